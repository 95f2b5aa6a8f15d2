import type {
  EvidenceDimension,
  GradedBy,
  Severity,
  SourceTrait,
  SpikeKind,
  SpikeSeverity,
} from "#model/kinds.ts";
import { lastingChanges, type RuleChange } from "#model/rule-change.ts";
import { type SourceTraits, sharedValues } from "#model/source-traits.ts";
import type { StoredSources } from "#model/stored-sources.ts";
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
  /** Other rules of the zone that rose in the same minutes. */
  readonly companions?: number;
  /** Different addresses in the window, and what decided the severity; null or left out if it did not depend on them. */
  readonly addresses?: number | null;
  readonly gradedBy?: GradedBy | null;
  /** Set for the kind `sources`. */
  readonly sources?: StoredSources | null;
  /** Set for the kinds of changes. */
  readonly changes?: readonly RuleChange[] | null;
  readonly evidence: {
    readonly top: Readonly<Record<EvidenceDimension, TopValues>>;
    readonly sparkline: readonly number[];
  };
}

/** A spike as alerts see it: times in epoch milliseconds, severity as on-call should take it. */
export interface AlertSpike extends Omit<StoredSpike, "severity" | "openedAt" | "closedAt">, ZoneFacts {
  readonly severity: Severity;
  readonly openedAtMs: number;
  readonly closedAtMs: number | null;
  /** For the kinds of changes: the rules whose change lasts, by which routes and silences match the alert. */
  readonly rules?: readonly string[];
  readonly traits?: SourceTraits;
  /** The traits that a silence of its alert names, the best first: those that fire, then the address, then the network. */
  readonly silenceBy?: readonly SourceTrait[];
}

/** Whether the count that it was found by is an everyday one again; the detector waits for a longer quiet before it closes. */
export function isCalm({ windowCount, threshold, closedAtMs }: AlertSpike): boolean {
  return closedAtMs !== null || windowCount < threshold;
}

/**
 * A new rule's burst is news, not an emergency: `info`, whatever its score, because there is nothing to compare it with.
 * Growing into a spike then raises the severity, which is told as `worse`. A silent rule is information, too.
 */
export function toAlertSpike(spike: StoredSpike, zones?: Zones): AlertSpike {
  const { severity, openedAt, closedAt, ...rest } = spike;
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

const TRAIT_OF = {
  rules_per_ip: "ip",
  ips_per_ja4: "ja4",
  ips_per_url: "url",
  ips_per_ua: null,
  ips_per_asn: "asn",
} as const;

function describeTraits({
  evidence: { top },
  sources,
}: StoredSpike): Required<Pick<AlertSpike, "traits" | "silenceBy">> {
  const findings = (sources?.findings ?? [])
    .toSorted((a, b) => b.score - a.score)
    .flatMap(({ kind, key }) => (TRAIT_OF[kind] === null ? [] : [{ trait: TRAIT_OF[kind], key }]));
  const fired = (trait: SourceTrait) => findings.filter((one) => one.trait === trait).map(({ key }) => key);
  const traits = {
    ip: [...fired("ip"), ...sharedValues(top.ip)],
    asn: [...fired("asn"), ...sharedValues(top.asn)],
    country: sharedValues(top.country),
    ja4: [...fired("ja4"), ...sharedValues(top.ja4)],
    url: [...fired("url"), ...sharedValues(top.path)],
  };
  const named = new Set([...findings.map(({ trait }) => trait), "ip" as const, "asn" as const]);
  return { traits, silenceBy: [...named].filter((trait) => traits[trait].length > 0) };
}
