/** The routes of an alert, inhibitions and quiet hours. */

import { type EqualLabel, WEEKDAYS, type Weekday } from "#model/kinds.ts";
import { matchesSubject, type Subject } from "#model/subject.ts";
import type { Inhibition, QuietHours, Route, Routing, Timing } from "./routing.ts";

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
  const quiet = findChannelsInQuietHours(routing.quietHours, subject, routed, nowMs);
  return {
    channels: routed.filter((channel) => !quiet.has(channel)),
    held: [...quiet],
    timing: (routes[0] ?? routing.root).timing,
    repeatIntervalMs,
  };
}

/**
 * Returns the routes of a subject, as Alertmanager does: children in order, the first that matches and, while
 * `continue` is set, the next that match. If none of a route's children matches, the route itself applies. The root
 * applies if no other route does, so the result has at least one route. `visit` is called for every route that is
 * tried.
 */
export function pickRoutes(
  root: Route,
  subject: Subject,
  visit?: (route: Route, isMatch: boolean) => void,
): readonly Route[] {
  const picked: Route[] = [];
  for (const child of root.routes) {
    const isMatch = matchesSubject(child.matchers, subject);
    visit?.(child, isMatch);
    if (!isMatch) continue;
    picked.push(...pickRoutes(child, subject, visit));
    if (!child.continue) break;
  }
  return picked.length > 0 ? picked : [root];
}

/**
 * Returns the inhibition that mutes `subject` while the `firing` alerts fire; null if there is none. An alert that is
 * both source and target of an inhibition is not muted by another such alert: two of them would mute each other.
 */
export function findInhibition(
  inhibitions: readonly Inhibition[],
  subject: Subject,
  firing: readonly Subject[],
): Inhibition | null {
  const holds = ({ source, target, equal }: Inhibition) =>
    matchesSubject(target, subject) &&
    !matchesSubject(source, subject) &&
    firing.some(
      (other) => matchesSubject(source, other) && equal.every((label) => isEqual(label, subject, other)),
    );
  return inhibitions.find(holds) ?? null;
}

function isEqual(label: EqualLabel, subject: Subject, other: Subject): boolean {
  return label === "zone" ? subject.zoneId === other.zoneId : subject.ruleId === other.ruleId;
}

/** Returns the channels of `channels` that are in quiet hours for this subject now. */
export function findChannelsInQuietHours(
  quietHours: readonly QuietHours[],
  subject: Subject,
  channels: readonly string[],
  nowMs: number,
): ReadonlySet<string> {
  const inForce = quietHours.filter(
    (hours) =>
      !(subject.severity === "critical" && hours.critical === "tell") &&
      matchesSubject(hours.matchers, subject) &&
      isInForce(hours, nowMs),
  );
  const isHeld = (channel: string) =>
    inForce.some(({ channels: named }) => named === null || named.includes(channel));
  return new Set(channels.filter(isHeld));
}

/** Uses the wall clock: quiet hours keep their times if summer time begins or ends during them. */
export function isInForce({ timeZone, days, fromMinute, toMinute }: QuietHours, nowMs: number): boolean {
  const { weekday, minute } = readWallClock(timeZone, nowMs);
  if (fromMinute < toMinute) return days.includes(weekday) && minute >= fromMinute && minute < toMinute;
  if (minute >= fromMinute) return days.includes(weekday);
  return minute < toMinute && days.includes(dayBefore(weekday));
}

function dayBefore(weekday: Weekday): Weekday {
  return WEEKDAYS[(WEEKDAYS.indexOf(weekday) + 6) % 7] as Weekday;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function readWallClock(timeZone: string, nowMs: number): { weekday: Weekday; minute: number } {
  const format = formats.get(timeZone) ?? createFormat(timeZone);
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  return {
    weekday: (parts.get("weekday") ?? "").slice(0, 3).toLowerCase() as Weekday,
    minute: Number(parts.get("hour")) * 60 + Number(parts.get("minute")),
  };
}

/** Making one costs far more than using it; there are as many as zones in the configuration. */
function createFormat(timeZone: string): Intl.DateTimeFormat {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  formats.set(timeZone, format);
  return format;
}
