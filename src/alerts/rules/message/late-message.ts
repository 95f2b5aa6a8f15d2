import { many, showTime } from "#lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { StoredAttacker, StoredSources } from "#model/stored-sources.ts";
import { nameZone } from "#model/zones.ts";
import { ruleTitle } from "../alert-spike.ts";
import { describeIncident } from "./describe-incident.ts";
import { buildSelfMessage, type SelfMessageFacts } from "./self-message.ts";

/** The facts that a message about late events names one by one. */
const LISTED = 20;

export interface LateMessageFacts
  extends Pick<SelfMessageFacts, "alertId" | "fingerprint" | "alert" | "zone"> {
  readonly zoneId: number;
  /** The minutes [from, to) that nobody had judged, since the epoch. */
  readonly from: number;
  readonly to: number;
  /** Whether they were before the first start. */
  readonly isHistory: boolean;
  readonly incidents: readonly StoredSources[];
  /** Returns whether an attacker is still active; null if it is not new. */
  readonly isActive: (attacker: Pick<StoredAttacker, "kind" | "key">) => boolean | null;
  readonly newRules: readonly { readonly ruleId: string; readonly episode: FoundSpike }[];
  /** How many rules are still active. */
  readonly activeRules: number;
}

/** Times are the ends of minutes since the epoch. */
interface FoundSpike {
  readonly openedAt: number;
  readonly lastActiveAt: number;
  readonly peak: number;
  readonly windowMinutes: number;
}

/** Builds the only message about what was found in late events. What is still active has an alert of its own. */
export function buildLateMessage(facts: LateMessageFacts): AlertMessage {
  const { alertId, fingerprint, alert, zone, zoneId, incidents, isActive, newRules, to } = facts;
  const attackers = incidents
    .flatMap(
      (sources) =>
        describeIncident({ sources, attacking: sources.findings, closedAtMs: to * MINUTE_MS }).attackers,
    )
    .flatMap((one) => {
      const state = isActive(one);
      return state === null ? [] : [{ ...one, isActive: state }];
    });
  const details = [
    ...attackers.map(
      ({ finding, startedAt, lastSeenAt }) => `${finding}; ${describeSpan(startedAt, lastSeenAt)} UTC`,
    ),
    ...newRules.map(({ ruleId, episode }) => describeRule(ruleId, episode)),
  ];
  const headline = describeLate(facts, attackers);
  const shared = {
    alertId,
    fingerprint,
    alert,
    reason: "first",
    severity: "info",
    zoneId,
    headline,
  } as const;
  const rest = details.length - LISTED;
  return {
    ...buildSelfMessage({ ...shared, ...(zone === undefined ? {} : { zone }) }),
    kind: "late",
    details: rest > 0 ? [...details.slice(0, LISTED), `and ${rest} more`] : details,
    attackers,
  };
}

/** `2026-11-24 02:05 to 04:20 UTC in zone 101 (shop) arrived late: 2 attackers, 14 rules; 1 still active`. */
function describeLate(
  { from, to, isHistory, zoneId, zone, newRules, activeRules }: LateMessageFacts,
  attackers: readonly { readonly isActive: boolean }[],
): string {
  const name = nameZone(zoneId, zone?.zoneName);
  const found = [
    ...(attackers.length > 0 ? [many(attackers.length, "attacker")] : []),
    ...(newRules.length > 0 ? [many(newRules.length, "rule")] : []),
  ].join(", ");
  const active = activeRules + attackers.filter(({ isActive }) => isActive).length;
  const still = active > 0 ? `; ${active} still active` : "";
  if (isHistory)
    return `in the ${many((to - from) / 60, "hour")} before you started, ${name}: ${found}${still}`;
  const span = describeSpan(from * MINUTE_MS, to * MINUTE_MS);
  return `${span} UTC in ${name} arrived late: ${found}${still}`;
}

function describeSpan(fromMs: number, toMs: number): string {
  const [from, to] = [showTime(fromMs), showTime(toMs)];
  return `${from} to ${toMs - fromMs < 24 * HOUR_MS && from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`;
}

function describeRule(ruleId: string, { openedAt, lastActiveAt, peak, windowMinutes }: FoundSpike): string {
  const title = ruleTitle(ruleId);
  const span = describeSpan(openedAt * MINUTE_MS, lastActiveAt * MINUTE_MS);
  return `rule ${ruleId}${title === null ? "" : ` (${title})`}: up to ${many(peak, "event")} in ${windowMinutes} min; ${span} UTC`;
}
