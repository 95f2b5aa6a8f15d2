/** A spike as an alert sees it, and the name of its rule. */
import { MINUTE_MS } from "#lib/units.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import { attackerIdOf, isActive } from "#model/fingerprint.ts";
import {
  type EvidenceDimension,
  type GradedBy,
  type Severity,
  SOURCE_TRAITS,
  type SourceTrait,
  type SpikeKind,
  type SpikeSeverity,
} from "#model/kinds.ts";
import { isRuleKind, lastingChanges, type RuleChange } from "#model/rules.ts";
import type { StoredAttacker, StoredSources } from "#model/stored-sources.ts";
import { type SourceTraits, sharedValues, TRAIT_OF } from "#model/subject.ts";
import { type ZoneFacts, type Zones, zoneFactsOf } from "#model/zones.ts";

type TopValues = readonly { readonly value: string; readonly count: number; readonly share: number }[];

/** A spike as stored. Its evidence is hostile text, counted over a sample of the newest events. */
export interface StoredSpike {
  readonly id: number;
  readonly zoneId: number;
  readonly ruleId: string;
  readonly kind: SpikeKind;
  readonly severity: SpikeSeverity;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly windowMinutes: number;
  readonly windowCount: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly score: number;
  readonly peak: number;
  /** Distinguishes the incidents of a zone; empty or left out for a rule. */
  readonly incident?: string;
  /** The id of the spike whose alert a rule's spike is part of: an incident, or another rule with the same requests. */
  readonly memberOf?: number | null;
  /** The fingerprint of the alert that it took over when it opened; null or left out if it has its own. */
  readonly takesOver?: string | null;
  readonly judgedThrough?: Date;
  /** Different addresses in the window, and what decided the severity; null or left out if none is known. */
  readonly addresses?: number | null;
  /** The fewest addresses that send four fifths of the events. */
  readonly mainSenders?: number | null;
  readonly gradedBy?: GradedBy | null;
  /** Set for the kind `sources`. */
  readonly sources?: StoredSources | null;
  /** The names of the attackers that a person has resolved, as `attackerIdOf` returns them. */
  readonly resolvedAttackers?: readonly string[];
  /** Set for the kinds of changes. */
  readonly changes?: readonly RuleChange[] | null;
  /** Set for the kind `custom-condition`. */
  readonly condition?: CustomCondition | null;
  readonly evidence: {
    readonly top: Readonly<Record<EvidenceDimension, TopValues>>;
    readonly sparkline: readonly number[];
  };
}

/** An attacker that is active and has a name of its own. */
interface AlertAttacker {
  readonly id: string;
  /** The end of its first minute, since the epoch. */
  readonly since: number;
  /** Those by which silences match it: its own, and those that most events of the incident share. */
  readonly traits: SourceTraits;
}

/** A spike as alerts see it: times in epoch milliseconds, severity as on-call should take it. */
export interface AlertSpike
  extends Omit<StoredSpike, "severity" | "openedAt" | "closedAt" | "judgedThrough">,
    ZoneFacts {
  readonly severity: Severity;
  /** The severity before a verdict raised it; left out if none has. */
  readonly raisedFrom?: Severity;
  readonly openedAtMs: number;
  readonly closedAtMs: number | null;
  /** Rules whose change lasts, for the kinds of changes, by which routes and silences match the alert. */
  readonly rules?: readonly string[];
  readonly traits?: SourceTraits;
  /**
   * Attackers of an incident that are active, or all if none is, the furthest above its line first. Those that a person
   * has resolved are left out.
   */
  readonly attacking?: readonly StoredAttacker[];
  /** Those of `attacking` that have a name of their own. */
  readonly attackers?: readonly AlertAttacker[];
  /** The traits that a silence of its alert names, the best first: those that fire, then the address, then the network. */
  readonly silenceBy?: readonly SourceTrait[];
}

/** Whether the count that it was found by is an everyday one again; the detector waits for a longer quiet before it closes. */
export function isCalm({ windowCount, threshold, closedAtMs }: AlertSpike): boolean {
  return closedAtMs !== null || windowCount < threshold;
}

/**
 * Whether a rule's spike closed although its count is still half of what opened it: that is usual by now. A spike that is part of
 * another alert ends with it, while its own count may still be high.
 */
export function isSettled({ kind, closedAtMs, memberOf, windowCount, threshold }: AlertSpike): boolean {
  return closedAtMs !== null && isRuleKind(kind) && memberOf == null && windowCount >= threshold / 2;
}

/**
 * A new rule's burst is information: `info`, whatever its score, because there is nothing to compare it with. If the burst
 * grows into a spike, the severity rises, and the message has the reason `worse`. A silent rule is information, too.
 */
export function toAlertSpike(spike: StoredSpike, zones?: Zones): AlertSpike {
  const { severity, openedAt, closedAt, judgedThrough: _, ...rest } = spike;
  return {
    ...rest,
    ...zoneFactsOf(zones, rest.zoneId),
    severity: rest.kind === "new-rule" || rest.kind === "silent-rule" ? "info" : severity,
    openedAtMs: openedAt.getTime(),
    closedAtMs: closedAt?.getTime() ?? null,
    ...describeTraits(spike),
    // A change concerns every visitor, so no silence of it names one.
    ...(rest.changes == null
      ? {}
      : { rules: lastingChanges(rest.changes).map(({ ruleId }) => ruleId), silenceBy: [] }),
  };
}

function attackingNow({
  sources,
  judgedThrough,
  resolvedAttackers: resolved = [],
}: Pick<StoredSpike, "sources" | "judgedThrough" | "resolvedAttackers">) {
  const found = (sources?.findings ?? [])
    .filter((one) => !resolved.includes(attackerIdOf(one)))
    .toSorted((a, b) => b.score - a.score);
  const minute = judgedThrough === undefined ? 0 : Math.floor(judgedThrough.getTime() / MINUTE_MS) - 1;
  const active = found.filter((attacker) => isActive(attacker, minute));
  return active.length > 0 ? active : found;
}

function describeTraits(
  spike: StoredSpike,
): Required<Pick<AlertSpike, "traits" | "silenceBy" | "attackers" | "attacking">> {
  const { top } = spike.evidence;
  const attacking = attackingNow(spike);
  const findings = attacking.map(({ kind, key }) => ({ trait: TRAIT_OF[kind], key }));
  const shared = {
    ip: sharedValues(top.ip),
    asn: sharedValues(top.asn),
    country: sharedValues(top.country),
    ja4: sharedValues(top.ja4),
    ua: sharedValues(top.ua),
    url: sharedValues(top.path),
  };
  const fired = (trait: SourceTrait) => findings.filter((one) => one.trait === trait).map(({ key }) => key);
  const traits = Object.fromEntries(
    SOURCE_TRAITS.map((trait) => [trait, [...fired(trait), ...shared[trait]]]),
  ) as Record<SourceTrait, string[]>;
  const silenced = new Set([...findings.map(({ trait }) => trait), "ip" as const, "asn" as const]);
  const named = attacking.filter(({ role }) => role !== "facet");
  const attackers = named.map(({ kind, key, since }) => {
    // An address that most events share is not that of another attacker.
    const own = { asn: shared.asn, country: shared.country, [TRAIT_OF[kind]]: [key] };
    return { id: attackerIdOf({ kind, key }), since, traits: named.length === 1 ? traits : own };
  });
  return {
    traits,
    attacking,
    attackers,
    silenceBy: [...silenced].filter((trait) => traits[trait].length > 0),
  };
}

/** The rule families of the OWASP Core Rule Set, by the first three digits of the rule id. */
const FAMILIES: Readonly<Record<string, string>> = {
  911: "Method enforcement",
  913: "Scanner detection",
  920: "Protocol enforcement",
  921: "Protocol attack",
  922: "Multipart attack",
  930: "Local file inclusion",
  931: "Remote file inclusion",
  932: "Remote command execution",
  933: "PHP injection",
  934: "Generic application attack",
  941: "Cross-site scripting",
  942: "SQL injection",
  943: "Session fixation",
  944: "Java attack (Log4j included)",
  949: "Inbound anomaly score",
  950: "Data leakage",
  951: "SQL data leakage",
  952: "Java data leakage",
  953: "PHP data leakage",
  954: "IIS data leakage",
  955: "Web shell",
  959: "Outbound anomaly score",
  980: "Anomaly score correlation",
};

/**
 * Returns the subject of a managed rule; null for every other rule (a customer's own rules have long numbers without
 * meaning).
 */
export function ruleTitle(ruleId: string | null): string | null {
  return ruleId !== null && /^9\d{5}$/.test(ruleId) ? (FAMILIES[ruleId.slice(0, 3)] ?? null) : null;
}

/** `SQL injection: rule 942100`. */
export function nameRule(ruleId: string): string {
  const title = ruleTitle(ruleId);
  return `${title === null ? "" : `${title}: `}rule ${ruleId}`;
}
