import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { COUNT_ROUTES, type Lie, ROUTES, ROW_ROUTES } from "../support/liar/lie.ts";
import type { LieTally } from "../support/liar/lying-platform.ts";

/** False answers of a platform that seems healthy. The random seed chooses how long they last. */
export const SOAK_LIES: readonly (readonly [name: string, lie: Lie])[] = [
  ["is empty on every route", { kind: "empty", routes: ROUTES }],
  ["shows nothing, counts truthfully", { kind: "empty", routes: ROW_ROUTES }],
  ["counts nothing, shows truthfully", { kind: "empty", routes: COUNT_ROUTES }],
  ["hides events in rows, list and counts", hiding(["search", "list", "counts"])],
  ["hides events in the list", hiding(["list"])],
  ["hides events in the search", hiding(["search"])],
  ["rounds times in the list", { kind: "rounded", share: 0.1, routes: ["list"] }],
  ["moves times in the search", { kind: "shifted", share: 0.02, shiftMs: -1_500, routes: ["search"] }],
  ["shows events twice", { kind: "doubled", share: 0.1, routes: ROW_ROUTES }],
  ["counts events twice", { kind: "doubled", share: 0.1, routes: COUNT_ROUTES }],
  ["empties pages in mid-pass", { kind: "emptyPage", routes: ["search", "list"] }],
  ["shows entries outside their day", { kind: "outOfWindow", share: 0.1, routes: ["list"] }],
  ["contradicts itself", { kind: "contradictory", routes: ["search", "counts", "list"] }],
  ["shows an event that never happened", { kind: "phantom", count: 1, routes: ["search"] }],
  ["lists an event that never happened", { kind: "phantom", count: 1, routes: ["list"] }],
  ["answers another zone's events", { kind: "foreign", zones: [101], otherZone: 102, routes: ROUTES }],
  ["names a false rule", { ...wrong({ ruleId: "999001" }), routes: ["search"] }],
  ["shows false addresses and URLs", { ...wrong({ ip: "192.0.2.66", url: "/false" }), routes: ["search"] }],
  [
    "keeps half of the history",
    { kind: "forgets", keptMs: 36 * HOUR_MS, routes: ["search", "counts", "list"] },
  ],
  ["counts one more in each metric", { kind: "grows", routes: ["metrics"] }],
  ["lists entries again", { kind: "repeats", routes: ["list"] }],
  ["lists an entry that cannot be read", { kind: "unreadable", count: 1, routes: ["list"] }],
  ["counts the end of a bucket", { kind: "endInclusive", routes: ["counts"] }],
  // The service waits for five minutes at most, but the soak is short.
  ["refuses a zone", { kind: "refuses", zones: [101], retryAfter: 20, routes: ROUTES }],
  ["moves events by 90 minutes", { kind: "shifted", share: 0.01, shiftMs: -90 * MINUTE_MS, routes: ROUTES }],
];

function wrong(fields: NonNullable<Lie["fields"]>): Pick<Lie, "kind" | "share" | "fields"> {
  return { kind: "wrongValue", share: 0.02, fields };
}

function hiding(routes: Lie["routes"]): Lie {
  return { kind: "short", share: 0.1, salt: "soak", routes };
}

/** How often each lie was used, and the number of answers and events that it changed. */
export interface ToldLie {
  readonly name: string;
  readonly told: number;
  readonly answers: number;
  readonly events: number;
}

export function reckonLies(tallies: readonly LieTally[]): ToldLie[] {
  return SOAK_LIES.flatMap(([name, lie]) => {
    const all = tallies.filter((tally) => tally.lie === lie);
    const sum = (of: "answers" | "events") => all.reduce((total, tally) => total + tally[of], 0);
    return all.length === 0
      ? []
      : [{ name, told: all.length, answers: sum("answers"), events: sum("events") }];
  });
}
