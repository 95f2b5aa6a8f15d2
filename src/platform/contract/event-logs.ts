/** The bodies of the three routes to events: the day's list, the search and the export. */

import ipaddr from "ipaddr.js";
import { z } from "zod";
import { StatusBlock } from "./errors.ts";
import {
  Count,
  EpochMs,
  EventTime,
  Int32,
  LogId,
  listOf,
  OptionalText,
  requireList,
  Text,
} from "./values.ts";

export const LABELS = [
  ...(["asn", "country", "ruleId", "severity"] as const),
  ...(["method", "ruleGroup", "status", "serverZone"] as const),
];

/** All members are strings; `""` means none. `status` is an action word such as `Blocked`, not an HTTP status. */
const EventLogLabels = z.looseObject(
  Object.fromEntries(LABELS.map((name) => [name, Text])) as Record<(typeof LABELS)[number], typeof Text>,
);

/** One entry of a page. `log` holds JSON as text (read it with EventLog). Other text and objects occur as well. */
export const EventLogEntry = z.looseObject({
  logId: LogId,
  timestamp: EventTime,
  log: z.unknown().optional(),
  labels: EventLogLabels.nullish().transform((labels) => labels ?? EventLogLabels.parse({})),
});
export type EventLogEntry = z.infer<typeof EventLogEntry>;

/**
 * A page of a day's log; platform API spec 2.7. The entries of `logs` are not checked here, so that a bad entry
 * affects no other: read each with EventLogEntry. `logs` and `hasMoreData` are required, because without them the
 * answer does not say that the day is empty or ends here. The last page's token is `""` or null; both read as null.
 */
export const EventLogListResponse = z.looseObject({
  logs: z.array(z.unknown()),
  hasMoreData: z.boolean(),
  continuationToken: OptionalText.transform((token) => (token === "" ? null : token)),
  startToken: OptionalText,
  errorResponse: StatusBlock,
});
export type EventLogListResponse = z.infer<typeof EventLogListResponse>;

/**
 * The request context in an entry's `log` text, PascalCase. The zone's settings decide which members are filled, and
 * the visitor wrote most of them. So a member of the wrong type reads as missing and does not affect the others.
 * `RemoteIp` may be masked (`203.0.113.*`). `Headers` and `TriggerMatch` come in several forms: read them with
 * `readHeaders` and `readMatch`.
 */
export const EventLog = z.looseObject({
  ServerZoneId: z.int().nullish().catch(null),
  Message: Text.catch(""),
  Url: Text.catch(""),
  RemoteIp: Text.catch(""),
  UrlEncodedBody: OptionalText.catch(null),
});
export type EventLog = z.infer<typeof EventLog>;

/** The nine dimensions of the search language, in the order of an export. */
export const DIMENSIONS = [
  "feature",
  "ruleId",
  "ip",
  "ja4",
  "ua",
  "url",
  "asn",
  "country",
  "action",
] as const;
const Dimension = z.enum(DIMENSIONS);
export type Dimension = z.output<typeof Dimension>;

export const OPERATORS = ["eq", "in", "contains", "cidr", "wildcard"] as const;
const Operator = z.enum(OPERATORS);

/** One clause of a search or export; clauses combine with AND, the values of one with OR. */
export const EventLogsFilter = z
  .strictObject({ field: Dimension, op: Operator, value: z.array(z.string()).min(1) })
  .refine((filter) => filter.op !== "cidr" || filter.field === "ip", {
    path: ["op"],
    error: "cidr applies to the field ip only",
  })
  .refine((filter) => filter.op !== "cidr" || filter.value.every(isNetwork), {
    path: ["value"],
    error: "cidr needs IPv4 or IPv6 networks such as 203.0.113.0/24",
  });
export type EventLogsFilter = z.infer<typeof EventLogsFilter>;

function isNetwork(text: string): boolean {
  return ipaddr.isValidCIDR(text) || ipaddr.isValid(text);
}

const WINDOW_ORDER = { path: ["to"], error: "must be after from" };

/**
 * The request of a search; platform API spec 2.3. `pageSize` and `buckets` are not clamped here: the server clamps
 * them and its answer says which values it used. Only the server checks, by its own clock, whether the window lies
 * within the last 72 hours.
 */
export const EventLogsSearchRequest = z
  .strictObject({
    from: EpochMs,
    to: EpochMs,
    query: z.string().nullish(),
    filters: z.array(EventLogsFilter).nullish(),
    groupBy: z.array(Dimension).nullish(),
    buckets: Int32.optional(),
    page: Int32.min(0).optional(),
    pageSize: Int32.optional(),
  })
  .refine((request) => request.to > request.from, WINDOW_ORDER);
export type EventLogsSearchRequest = z.infer<typeof EventLogsSearchRequest>;

const Dimensions = z
  .record(z.string(), Text)
  .nullish()
  .transform((value) => value ?? {});

/**
 * One flat row. Rows are read one by one, so that a bad one can be quarantined. `log` is an object here, a string in
 * the list.
 */
export const EventRow = z.looseObject({
  logId: LogId,
  timestamp: EventTime,
  log: z.unknown().optional(),
  fields: Dimensions,
});
export type EventRow = z.infer<typeof EventRow>;

/** One group. `sparkline` is null unless the request set `buckets`; `context` member names are the platform's. */
export const EventGroup = z.looseObject({
  key: Dimensions,
  count: z.int().min(0),
  firstSeen: EpochMs.nullish().transform((value) => value ?? null),
  lastSeen: EpochMs.nullish().transform((value) => value ?? null),
  context: z
    .record(z.string(), z.unknown())
    .nullish()
    .transform((value) => value ?? {}),
  sparkline: z
    .array(z.int().min(0))
    .nullish()
    .transform((value) => value ?? null),
});
export type EventGroup = z.infer<typeof EventGroup>;

/** Beyond 2^53 the nearest number: a total decides nothing but the number of pages, and `searchEventLogs` warns. */
const Total = z.union([z.int().min(0), z.string().regex(/^\d+$/).transform(Number)]);
const Entries = listOf(z.unknown());

/**
 * A search answer; platform API spec 2.4. The side that was not requested is `[]` whether the platform sent null,
 * `[]` or nothing. The elements of rows and groups are not checked here: read each with EventRow or EventGroup.
 */
export const EventLogsSearchResponse = z.preprocess(
  requireList(["rows", "groups"]),
  z.looseObject({
    rows: Entries,
    groups: Entries,
    total: Total,
    totalPages: Count,
    page: Count,
    errorResponse: StatusBlock,
  }),
);
export type EventLogsSearchResponse = z.infer<typeof EventLogsSearchResponse>;

function responseWith(asked: "rows" | "groups", other: "rows" | "groups") {
  return z
    .preprocess(requireList([asked]), EventLogsSearchResponse)
    .refine((page) => page[other].length === 0, { path: [other], error: `must be empty beside ${asked}` });
}

/** The answer by the side that was requested: that side is a list, and the other side is empty. */
export const SEARCH_RESPONSES = {
  rows: responseWith("rows", "groups"),
  groups: responseWith("groups", "rows"),
};

/** The request of an export; platform API spec 2.6. It has no grouping and no paging. */
export const EventLogsExportRequest = z
  .strictObject({
    from: EpochMs,
    to: EpochMs,
    query: z.string().nullish(),
    filters: z.array(EventLogsFilter).nullish(),
  })
  .refine((request) => request.to > request.from, WINDOW_ORDER);
export type EventLogsExportRequest = z.infer<typeof EventLogsExportRequest>;
