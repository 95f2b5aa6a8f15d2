import { MINUTE_MS } from "#lib/units.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import type { EqualLabel, LOWERING_VERDICTS, QuietCritical, Weekday } from "#model/kinds.ts";
import type { SubjectMatchers } from "#model/subject.ts";
import type { Zones } from "#model/zones.ts";

/** When a route's channels are notified; in milliseconds. */
export interface Timing {
  /** How long the first notification waits after the spike opened. */
  readonly groupWaitMs: number;
  /** The least time between two notifications of one alert on one channel. */
  readonly groupIntervalMs: number;
  readonly repeatIntervalMs: number;
}

export interface Route {
  readonly matchers: SubjectMatchers;
  readonly channels: readonly string[];
  readonly timing: Timing;
  /** Whether the next sibling is looked at as well. */
  readonly continue: boolean;
  readonly routes: readonly Route[];
}

/** A firing source keeps its targets from the channels. */
export interface Inhibition {
  readonly source: SubjectMatchers;
  readonly target: SubjectMatchers;
  /** Labels that both alerts must have in common. */
  readonly equal: readonly EqualLabel[];
}

/** Times of the wall clock in `timeZone`, minutes after midnight, [from, to); over midnight where `to` is not later. */
export interface QuietHours {
  readonly timeZone: string;
  /** Days on whose evening the quiet hours begin. */
  readonly days: readonly Weekday[];
  readonly fromMinute: number;
  readonly toMinute: number;
  /** Null: all channels. */
  readonly channels: readonly string[] | null;
  readonly matchers: SubjectMatchers;
  readonly critical: QuietCritical;
}

/** A link for the messages that its matchers match: an address of the operator with places to fill in. */
export interface LinkRule {
  readonly title: string;
  readonly url: string;
  readonly matchers: SubjectMatchers;
  /** The address is that of the console's explorer, and gets the search of a custom condition. */
  readonly isSearch?: true;
}

/** Effects of a verdict on a severity. A misfire has none. */
export interface VerdictEffects {
  /** Whether an attack that is almost certain makes an alert critical. */
  readonly raise: boolean;
  /** The verdicts whose alerts are at most a warning. */
  readonly lower: readonly (typeof LOWERING_VERDICTS)[number][];
}

export const DEFAULT_EFFECTS: VerdictEffects = { raise: true, lower: [] };

export interface Routing {
  /** Names of every configured channel, whether a route names it or not. */
  readonly channels: readonly string[];
  readonly root: Route;
  readonly inhibitions: readonly Inhibition[];
  readonly quietHours: readonly QuietHours[];
  /** Links in the order in which a message shows them. */
  readonly links: readonly LinkRule[];
  /** If fewer addresses than this send most of a rule's spike, it is listed and notifies nobody, unless it pages. */
  readonly fewAddresses: number;
  /** `DEFAULT_EFFECTS` if left out. */
  readonly verdict?: VerdictEffects;
  /** Names and labels of zones; none without. */
  readonly zones?: Zones;
}

/** Timing of a route that does not set its own. */
export const DEFAULT_TIMING: Timing = {
  // An incident opens with its attacker, so a rule waits only for the next judgement of the sources.
  groupWaitMs: 10_000,
  groupIntervalMs: 5 * MINUTE_MS,
  repeatIntervalMs: 4 * 60 * MINUTE_MS,
};

/** Routing without a routing file: every alert to every channel, at once. */
export function routeToAll(channels: readonly string[]): Routing {
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0 };
  const root = { matchers: {}, channels, timing, continue: false, routes: [] };
  return { channels, root, inhibitions: [], quietHours: [], links: [], fewAddresses: FEW_ADDRESSES };
}
