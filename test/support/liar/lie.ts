import type { DIMENSIONS } from "#platform/contract/event-logs.ts";

export type Dimension = (typeof DIMENSIONS)[number];

/** The ways in which the platform shows or counts events. `counts` is the grouped search, `search` the flat one. */
export const ROUTES = ["search", "counts", "list", "export", "metrics"] as const;
export type Route = (typeof ROUTES)[number];

/** Every route that shows single events. */
export const ROW_ROUTES = ["search", "list", "export"] as const satisfies readonly Route[];
/** Every route that only counts events. */
export const COUNT_ROUTES = ["counts", "metrics"] as const satisfies readonly Route[];

/**
 * - `empty`: no event of the span is shown or counted.
 * - `short`: a share of the events is hidden; totals, pages and counts fit what is left.
 * - `rounded`: a share of the events has its time rounded down to the second.
 * - `shifted`: a share of the events has its time moved by `shiftMs`, if it stays on its UTC day and in the past.
 * - `doubled`: a share of the events is shown and counted twice.
 * - `outOfWindow`: a share of the events is shown with a time an hour before the asked window or day.
 * - `contradictory`: totals below the shown rows, buckets that do not add up, a list entry outside its day.
 * - `emptyPage`: a page between the first and the last is empty; totals and tokens stay true.
 * - `phantom`: a share of the events has a copy that never happened, with an invented log id and a time 1 ms later.
 * - `foreign`: the answer is the emulator's true answer for `otherZone`. Other lies to the same request have no effect.
 * - `wrongValue`: a share of the events has the values of `fields`, in rows, list entries and groups.
 * - `forgets`: events older than `keptMs` are neither shown nor counted.
 * - `grows`: the metrics of each day of the span count one event more at each read.
 * - `repeats`: from the third page of a list pass on, a page begins with the last entries of the page before the last.
 * - `unreadable`: in the list, a share of the events is followed by an entry that cannot be read.
 * - `endInclusive`: a bucket of the counts includes its end, so an event on a bucket's end is counted in two buckets.
 * - `refuses`: the request is answered with 429 and `retryAfter`.
 */
export const KINDS = [
  "empty",
  "short",
  "rounded",
  "shifted",
  "doubled",
  "outOfWindow",
  "contradictory",
  "emptyPage",
  "phantom",
  "foreign",
  "wrongValue",
  "forgets",
  "grows",
  "repeats",
  "unreadable",
  "endInclusive",
  "refuses",
] as const;
export type LieKind = (typeof KINDS)[number];

/** One false statement of the platform. Times in epoch ms of the platform's clock; a span is [from, to). */
export interface Lie {
  readonly kind: LieKind;
  readonly routes: readonly Route[];
  /** Default: every zone. */
  readonly zones?: readonly number[];
  /** Share of the events of the span, from 0 to 1. Default: all of them, as always for `empty`. */
  readonly share?: number;
  /** Lies of the same salt choose the same events. */
  readonly salt?: string;
  /** Only events whose true time lies in this span. */
  readonly events?: { readonly from?: number; readonly to?: number };
  /** When the lie is in effect. Default: from now on, without end. */
  readonly begins?: number;
  readonly ends?: number;
  /** At most so many events, the first that a request concerns. Default: no limit. */
  readonly count?: number;
  /** For `shifted`. */
  readonly shiftMs?: number;
  /** For `foreign`: a zone of the emulator. */
  readonly otherZone?: number;
  /** For `wrongValue`: the false value of each dimension. */
  readonly fields?: Readonly<Partial<Record<Dimension, string>>>;
  /** For `forgets`. */
  readonly keptMs?: number;
  /** For `unreadable`: the log id is missing (default), or the timestamp is a text. */
  readonly broken?: "logId" | "timestamp";
  /** For `refuses`: the header, in seconds. Default: a day. */
  readonly retryAfter?: number;
  /** For `emptyPage`: number of pages to empty. Default: all. */
  readonly pages?: number;
}

/** A lie that is told, with what it remembers of its answers. */
export interface ActiveLie extends Lie {
  /** For `count`: the log ids of the events that the lie concerns. */
  readonly chosen: Set<string>;
  /** For `grows`: the number of reads so far, by path. */
  readonly reads: Map<string, number>;
}

/** The parts of a request that a lie depends on. */
export interface Question {
  readonly route: Route;
  readonly zone: number;
}

/** Returns whether the lie changes answers to this request now. */
export function isActiveFor(lie: Lie, { route, zone }: Question, now: number): boolean {
  const { begins = Number.NEGATIVE_INFINITY, ends = Number.POSITIVE_INFINITY } = lie;
  return lie.routes.includes(route) && (lie.zones?.includes(zone) ?? true) && begins <= now && now < ends;
}
