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
  /** For `shifted`. */
  readonly shiftMs?: number;
  /** For `emptyPage`: number of pages to empty. Default: all. */
  readonly pages?: number;
}

/** The parts of a request that a lie depends on. */
export interface Question {
  readonly route: Route;
  readonly zone: number;
}

/** Returns whether the lie changes answers to this request now. */
export function isToldTo(lie: Lie, { route, zone }: Question, now: number): boolean {
  const { begins = Number.NEGATIVE_INFINITY, ends = Number.POSITIVE_INFINITY } = lie;
  return lie.routes.includes(route) && (lie.zones?.includes(zone) ?? true) && begins <= now && now < ends;
}
