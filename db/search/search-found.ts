import { type ArchivedEvent, EVENT_TEXTS, toArchivedEvent } from "#model/archived-event.ts";

/** A row as `FOUND_COLUMNS` selects it: epoch ms, and the columns of an event. */
export interface FoundColumns extends Record<string, unknown> {
  readonly at: number;
}

const TEXTS = EVENT_TEXTS.map((name) =>
  name === "log_id" || name === "route" ? `e.${name}` : `coalesce(e.${name}, '') as ${name}`,
);
export const FOUND_COLUMNS = `(date_part('epoch', e.occurred_at) * 1000)::bigint::float8 as at, ${TEXTS.join(", ")}`;

export function toFoundEvent(row: FoundColumns): ArchivedEvent {
  return toArchivedEvent(
    row.at,
    EVENT_TEXTS.map((name) => row[name] as string),
  );
}
