import { z } from "zod";
import { EpochMs } from "./epoch-ms.ts";
import { StatusBlock } from "./generic-request-response.ts";
import { LogId } from "./log-id.ts";
import { OptionalText, Text } from "./text.ts";

export const LABELS = [
  ...(["asn", "country", "ruleId", "severity"] as const),
  ...(["method", "ruleGroup", "status", "serverZone"] as const),
];

/** All members are strings; `""` means none. `status` is an action word such as `Blocked`, not an HTTP status. */
const EventLogLabels = z.looseObject(
  Object.fromEntries(LABELS.map((name) => [name, Text])) as Record<(typeof LABELS)[number], typeof Text>,
);

/** One entry of a page. `log` holds JSON as text (read it with EventLog), but other text occurs as well. */
export const EventLogEntry = z.looseObject({
  logId: LogId,
  timestamp: EpochMs,
  log: OptionalText,
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

const Header = z.looseObject({ Name: Text, Value: Text });

/**
 * The request context in an entry's `log` text, PascalCase. The zone's settings decide which members are filled, and
 * the visitor wrote most of them. So a member of the wrong type reads as missing and does not affect the others.
 * `RemoteIp` may be masked (`203.0.113.*`).
 */
export const EventLog = z.looseObject({
  ServerZoneId: z.int().nullish().catch(null),
  Message: Text.catch(""),
  Url: Text.catch(""),
  RemoteIp: Text.catch(""),
  UrlEncodedBody: OptionalText.catch(null),
  Headers: z
    .array(Header.nullable().catch(null))
    .nullish()
    .catch([])
    .transform((headers) => (headers ?? []).filter((header) => header !== null)),
  TriggerMatch: z
    .looseObject({ Key: Text, Value: Text })
    .nullish()
    .catch(null)
    .transform((match) => match ?? null),
});
export type EventLog = z.infer<typeof EventLog>;
