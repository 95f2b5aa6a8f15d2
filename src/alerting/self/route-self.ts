import type { Severity } from "../../model/severity.ts";
import { type ZoneFacts, zoneFactsOf } from "../../model/zones.ts";
import { planTelling } from "../routing/plan-telling.ts";
import type { LinkRule, Routing } from "../routing/routing.ts";
import { findSilence, type Silence } from "../silence.ts";

/** What routes and silences look at where Longwatch speaks of itself. */
export interface SelfSubject {
  /** Null where no single zone is concerned. */
  readonly zoneId: number | null;
  readonly severity: Severity;
}

export interface SelfRoute {
  readonly channels: readonly string[];
  /** The silence that holds it back; whoever was not told hears when that is over. */
  readonly silencedBy: number | null;
  /** What its messages may link to. */
  readonly links: readonly LinkRule[];
  readonly zone: ZoneFacts;
}

/**
 * Who hears of what Longwatch says about itself: whom the routes name for the kind `self`, the first route's channels where
 * none is for it. A silence holds it back as everything else. Quiet hours never do: nobody would look in the morning for
 * what was not said at night.
 */
export function routeSelf(
  { routing, silences, nowMs }: { routing: Routing; silences: readonly Silence[]; nowMs: number },
  { zoneId, severity }: SelfSubject,
): SelfRoute {
  const subject = { kind: "self", zoneId, ruleId: null, severity };
  const { channels, held } = planTelling(routing, subject, nowMs);
  return {
    channels: [...channels, ...held],
    silencedBy: findSilence(silences, subject, nowMs)?.id ?? null,
    links: routing.links,
    zone: zoneFactsOf(routing.zones, zoneId),
  };
}

/**
 * Whom the routes name, without those that fail: of these they are told. Where nobody would be left, everybody who can
 * still be reached.
 */
export function avoidFailing(
  route: SelfRoute,
  configured: readonly string[],
  failing: ReadonlySet<string>,
): SelfRoute {
  const well = route.channels.filter((channel) => !failing.has(channel));
  const channels = well.length > 0 ? well : configured.filter((channel) => !failing.has(channel));
  return { ...route, channels };
}
