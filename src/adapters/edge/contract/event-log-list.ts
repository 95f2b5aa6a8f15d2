import { z } from "zod";
import { EventTime } from "./epoch-ms.ts";
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
