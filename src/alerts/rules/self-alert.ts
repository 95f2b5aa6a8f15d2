import type { Severity } from "#model/kinds.ts";
import { isGraver } from "#model/words.ts";
import { type ZoneFacts, zoneFactsOf } from "#model/zones.ts";
import { gravestNotified, notifiedChannels } from "./alert-history.ts";
import type { AlertRecord } from "./alert-record.ts";
import { planRoute } from "./routing/plan-route.ts";
import type { LinkRule, Routing } from "./routing/routing.ts";
import { findSilence, type Silence } from "./silence.ts";

/** The next message of an alert about Longwatch itself. */
export interface SelfChange {
  readonly reason: "first" | "worse" | "resolved" | "none";
  readonly severity: Severity;
  readonly headline: string;
  readonly openedAtMs: number;
}

/** The subject of an alert about Longwatch itself, for routes and silences. */
export interface SelfSubject {
  /** Null if the alert is not about one zone. */
  readonly zoneId: number | null;
  readonly severity: Severity;
}

export interface SelfRoute {
  readonly channels: readonly string[];
  /** The silence that mutes the alert. Its channels are notified after the silence. */
  readonly silencedBy: number | null;
  /** The links that its messages may have. */
  readonly links: readonly LinkRule[];
  readonly zone: ZoneFacts;
}

/**
 * Returns the channels of the routes for the kind `self`, or those of the root route if there is none. A silence mutes
 * such an alert like every other. Quiet hours do not, because nobody would look for it in the morning.
 */
export function routeSelf(
  { routing, silences, nowMs }: { routing: Routing; silences: readonly Silence[]; nowMs: number },
  { zoneId, severity }: SelfSubject,
): SelfRoute {
  const subject = { kind: "self", zoneId, ruleId: null, severity };
  const { channels, held } = planRoute(routing, subject, nowMs);
  return {
    channels: [...channels, ...held],
    silencedBy: findSilence(silences, subject, nowMs)?.id ?? null,
    links: routing.links,
    zone: zoneFactsOf(routing.zones, zoneId),
  };
}

/**
 * Returns the route without the channels that fail, because the alert is about these. If none is left, returns every
 * configured channel that works.
 */
export function avoidFailing(
  route: SelfRoute,
  configured: readonly string[],
  failing: ReadonlySet<string>,
): SelfRoute {
  const working = route.channels.filter((channel) => !failing.has(channel));
  const channels = working.length > 0 ? working : configured.filter((channel) => !failing.has(channel));
  return { ...route, channels };
}

/**
 * Returns the notify reason. An alert whose first message, or whose rise, nobody was notified of (a silence muted it,
 * or no channel worked) is sent once that is possible.
 */
export function reasonOf(
  { reason, severity }: SelfChange,
  alert: AlertRecord | null,
  { silencedBy, channels }: SelfRoute,
): SelfChange["reason"] | "repeat" {
  if (reason !== "none" || alert === null || silencedBy !== null || channels.length === 0) return reason;
  if (notifiedChannels(alert).size === 0) return alert.state === "firing" ? "repeat" : "none";
  return isGraver(severity, gravestNotified(alert)) ? "worse" : "none";
}
