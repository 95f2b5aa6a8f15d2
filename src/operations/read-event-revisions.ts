import type { Queryable } from "#db/client.ts";
import { listEventRevisions } from "#db/ingest/event-revisions.ts";
import type { EventKey } from "#model/event-key.ts";
import { FIELDS, type FieldName, toFieldName } from "#model/fields.ts";
import { maskAddress } from "#stages/archive/mask/mask.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";

/** More than an event has, unless a route changes its answer with every look. */
const MOST = 100;

/** Another value that the search showed; times in epoch ms. */
interface RevisedValue {
  readonly field: FieldName | "message";
  readonly before: string | null;
  readonly after: string | null;
  readonly seenAt: number;
  /** Null while no second look has confirmed the value; then the event still has the former value. */
  readonly acceptedAt: number | null;
}

export interface EventRevisions {
  /** When the platform first did not show the event any more; null while it shows the event. Epoch ms. */
  readonly withdrawnSince: number | null;
  /** Newest first. */
  readonly values: readonly RevisedValue[];
}

/** Returns what later looks changed of an event. Events without a change, and unknown events, have none. */
export async function readEventRevisions(
  db: Queryable,
  { zoneId, isMasked, ...key }: EventKey & { readonly zoneId: number; readonly isMasked: boolean },
): Promise<EventRevisions> {
  const rows = await listEventRevisions(db, zoneId, key, MOST);
  const withdrawn = rows.find(({ field, acceptedAt }) => field === "withdrawn" && acceptedAt !== null);
  return {
    withdrawnSince: withdrawn?.seenAt ?? null,
    values: rows.flatMap(({ field, before, after, ...times }) => {
      if (field === "withdrawn") return [];
      const mask = (value: string | null) => {
        if (!isMasked || value === null) return value;
        return field === FIELDS.address ? maskAddress(value) : maskNullable(value);
      };
      const name = toFieldName(COLUMNS[field] ?? field) ?? "message";
      return [{ field: name, before: mask(before), after: mask(after), ...times }];
    }),
  };
}

/** The fields whose column has another name than the platform's field. */
const COLUMNS: Readonly<Record<string, string>> = { rule_id: FIELDS.rule };
