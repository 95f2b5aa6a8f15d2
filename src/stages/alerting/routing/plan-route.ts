import type { Subject } from "#model/subject.ts";
import { pickRoutes } from "./pick-routes.ts";
import { findQuietChannels } from "./quiet-hours.ts";
import type { Routing, Timing } from "./routing.ts";

/** Channels that the routes name for a subject, and times at which they are notified. */
export interface RoutePlan {
  /** Notified now. */
  readonly channels: readonly string[];
  /** Notified after their quiet hours. */
  readonly held: readonly string[];
  /** The timing of the first matching route: group wait is the same for every channel. */
  readonly timing: Timing;
  /** The shortest interval of the routes of each channel. */
  readonly repeatIntervalMs: ReadonlyMap<string, number>;
}

export function planRoute(routing: Routing, subject: Subject, nowMs: number): RoutePlan {
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
