/** One comparison of stored events with the platform's, and the span it covers. */

import { readColdEnd } from "#db/archive/hot-days.ts";
import type { Queryable } from "#db/client.ts";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, type Span, startOfHour } from "#model/horizon.ts";
import type { QueryContext } from "#operations/operation.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";

/** Two numbers that should be the same. */
export interface Difference {
  /** Start of the counted hour or day, epoch ms. */
  readonly at: number;
  /** Null if all rules were counted together. */
  readonly ruleId: string | null;
  readonly expected: number;
  readonly found: number;
  /** Further facts, such as ids; untrusted text. */
  readonly detail: string | null;
  /** True if the service corrects it without a command. */
  readonly correctsItself?: true;
  /** True if only events differ that the platform does not show. */
  readonly isUnshown?: true;
}

/** The result of one check. */
export interface Check {
  readonly name: string;
  /** The names of the two compared sides. */
  readonly sides: readonly [expected: string, found: string];
  /** How much was compared, in words. */
  readonly compared: string;
  /** The result in words. If missing, the number of differences is shown. */
  readonly verdict?: string;
  readonly differences: readonly Difference[];
  /** The parts that were left out, with the reasons. */
  readonly notes: readonly string[];
  /** Reason why the check failed, or null. */
  readonly failure: string | null;
}

/** What a check says that ran to its end. */
export type Compared = Omit<Check, "notes" | "failure"> & Partial<Pick<Check, "notes">>;

/** The span that is checked: whole hours of one zone. */
export interface Checked extends Span, Pick<QueryContext, "db" | "now" | "signal"> {
  readonly zoneId: number;
  /** Called with the name of the running check and the finished share of it, 0 to 1. */
  readonly onStep: (label: string, share: number) => void;
}

/** Yields consecutive spans of at most `lengthMs`, aligned to it, that make up [from, to). */
export function* eachPart({ from, to }: Span, lengthMs: number): Generator<Span> {
  for (let at = from; at < to; ) {
    const end = Math.min(at - (at % lengthMs) + lengthMs, to);
    yield { from: at, to: end };
    at = end;
  }
}

/**
 * Returns the whole hours of a span that the platform still has and that get no more events, or null. `notes` names the
 * hours that are left out.
 */
export function findAskable(now: number, { from, to }: Span): { askable: Span | null; notes: string[] } {
  const horizon = horizonAt(now);
  const first = Math.max(from, Math.ceil(horizon / HOUR_MS) * HOUR_MS);
  const settled = now - SETTLE_MS;
  const last = Math.min(to, settled - (settled % HOUR_MS));
  const notes: string[] = [];
  if (from < first)
    notes.push(`before ${showTime(first)} UTC: not compared, the platform has forgotten these hours`);
  if (to > last) notes.push(`after ${showTime(last)} UTC: not compared, events may still appear`);
  return { askable: first < last ? { from: first, to: last } : null, notes };
}

const SHOWN = 3;
const MAX_ID_CHARS = 60;

/** Returns a few of `count` ids, such as `missing a, b, c and 12 more`, or null if there are none. */
export function showIds(what: string, ids: readonly string[], count = ids.length): string | null {
  if (ids.length === 0) return null;
  const shown = ids.slice(0, SHOWN).map((id) => shortenText(id, MAX_ID_CHARS));
  const more = count > shown.length ? ` and ${count - shown.length} more` : "";
  return `${what} ${shown.join(", ")}${more}`;
}

/** `archived`: the span ends before `coldEnd`, and these days are only in the archive. `empty`: nothing of it is stored. */
type WidenedSpan =
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
