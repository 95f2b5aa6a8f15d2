import { readColdEnd } from "#db/archive/hot-days.ts";
import type { Queryable } from "#db/client.ts";
import { listKnownZones } from "#db/coverage/coverage-report.ts";
import { HOUR_MS } from "#lib/units.ts";
import { type Span, startOfHour } from "#model/horizon.ts";

/** `archived`: the span ends before `coldEnd`, and these days are only in the archive. `empty`: nothing of it is stored. */
export type WidenedSpan =
  | (Span & { readonly kind: "whole" })
  | { readonly kind: "archived"; readonly coldEnd: number }
  | { readonly kind: "empty" };

/**
 * Extends the span to whole hours, but not beyond the first known hour and the current hour, nor to days that Postgres no
 * longer has.
 */
export async function widenSpan(
  db: Queryable,
  { zoneId, now, from, to }: Span & { readonly zoneId: number; readonly now: number },
): Promise<WidenedSpan> {
  const [zone] = await listKnownZones(db, zoneId);
  const coldEnd = (await readColdEnd(db, zoneId)) ?? 0;
  const first = Math.max(startOfHour(from), zone?.firstHour ?? 0, coldEnd);
  const last = Math.min(Math.ceil(to / HOUR_MS), Math.ceil(now / HOUR_MS)) * HOUR_MS;
  if (first >= last && last <= coldEnd) return { kind: "archived", coldEnd };
  if (zone === undefined || first >= last) return { kind: "empty" };
  return { kind: "whole", from: first, to: last };
}
