import { DIMENSIONS, type Dimension } from "./kinds.ts";
import { SEARCH_COLUMNS } from "./search-columns.ts";

/** An event with the values of its columns. An unknown value is ''. */
export interface ArchivedEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  /** Whether it was copied from the list or from a search. */
  readonly route: string;
  readonly fields: Readonly<Record<Dimension, string>>;
  readonly message: string;
  /** Facts of its request, for events without a record. */
  readonly method: string;
  readonly requestId: string;
}

/** The columns with the texts of an event, of Postgres and of the archive's files. */
export const EVENT_TEXTS = ["log_id", "route", ...Object.values(SEARCH_COLUMNS), "method", "request_id"];

/** Returns the event of a time with the values of `EVENT_TEXTS`, in their order. */
export function toArchivedEvent(
  occurredAt: number,
  [logId = "", route = "", ...texts]: readonly string[],
): ArchivedEvent {
  const fields = Object.fromEntries(DIMENSIONS.map((name, index) => [name, texts[index] ?? ""]));
  const [message = "", method = "", requestId = ""] = texts.slice(DIMENSIONS.length);
  return { logId, occurredAt, route, fields: fields as ArchivedEvent["fields"], message, method, requestId };
}
