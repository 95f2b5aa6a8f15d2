import type { Subject } from "../../model/subject.ts";
import { pickRoutes } from "./pick-routes.ts";
import { findQuietChannels } from "./quiet-hours.ts";
import type { Routing, Timing } from "./routing.ts";

/** Who hears of a subject now, and when. */
export interface Telling {
  /** To be told now. */
  readonly channels: readonly string[];
  /** Routed to, and to be told after their quiet hours. */
  readonly held: readonly string[];
  /** Of the first route that speaks for it; grouping and the wait are one for all its channels. */
  readonly timing: Timing;
  /** By channel, the shortest of its routes. */
  readonly repeatIntervalMs: ReadonlyMap<string, number>;
}

export function planTelling(routing: Routing, subject: Subject, nowMs: number): Telling {
  const routes = pickRoutes(routing.root, subject);
  const repeatIntervalMs = new Map<string, number>();
  for (const { channels, timing } of routes) {
    for (const channel of channels) {
      const known = repeatIntervalMs.get(channel) ?? Number.POSITIVE_INFINITY;
      repeatIntervalMs.set(channel, Math.min(known, timing.repeatIntervalMs));
    }
  }
  const routed = [...repeatIntervalMs.keys()];
  const quiet = findQuietChannels(routing.quietHours, subject, routed, nowMs);
  return {
    channels: routed.filter((channel) => !quiet.has(channel)),
    held: [...quiet],
    timing: (routes[0] ?? routing.root).timing,
    repeatIntervalMs,
  };
}
