import { formatWhole, many } from "#lib/format.ts";
import { classifyAction } from "#model/action-class.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { episodeKeyOf } from "#model/dedupe-key.ts";
import type { NotifyReason } from "#model/kinds.ts";
import { gravestOf, isGraver } from "#model/severity.ts";
import { nameZone } from "#model/zones.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { AlertSpike } from "../alert-spike.ts";
import { describeSources } from "./describe-sources.ts";
import { LONGWATCH } from "./silence-command.ts";

const NAMED = 3;
const TOP = 5;

export interface GroupFacts {
  readonly alertId: number;
  readonly fingerprint: string;
  /** After the transition. */
  readonly alert: AlertRecord;
  readonly reason: NotifyReason;
  /** At least one. */
  readonly spikes: readonly AlertSpike[];
}

/** One message for many rules, each of which is in its `members`. Texts of the evidence stay hostile. */
export function buildGroupMessage({ alertId, fingerprint, alert, reason, spikes }: GroupFacts): AlertMessage {
  // The gravest first, because the headline and the lists of the channels name the first ones only.
  const members = spikes.toSorted(
    (a, b) =>
      Number(isGraver(b.severity, a.severity)) - Number(isGraver(a.severity, b.severity)) ||
      Number(b.sources != null) - Number(a.sources != null) ||
      b.windowCount - a.windowCount ||
      b.score - a.score,
  );
  const zones = new Set(members.map(({ zoneId }) => zoneId));
  const [zoneId = 0] = zones;
  // The events of a zone's sources are those of its rules, and its counts are of rules or addresses.
  const rules = members.filter(({ sources }) => sources == null);
  const counted = rules.length > 0 ? rules : members;
  return alertMessage.parse({
    alertId,
    fingerprint,
    dedupeKey: episodeKeyOf({ fingerprint, firedAtMs: alert.firedAtMs }),
    transition: alert.transition,
    reason,
    state: alert.state,
    severity: gravestOf(members.map((member) => member.severity)),
    kind: "spike",
    zoneId: zones.size === 1 ? zoneId : null,
    ...(zones.size === 1 ? { zoneName: members[0]?.zoneName, zoneLabels: members[0]?.zoneLabels } : {}),
    ruleId: null,
    ruleTitle: null,
    headline: describeGroup(members, zones, alert.state),
    startedAt: alert.firedAtMs,
    endedAt: alert.state === "resolved" ? alert.resolvedAtMs : null,
    ...sumCounts(counted),
    actions: sumActions(counted),
    top: mergeTops(counted),
    sparkline: sumSparklines(counted),
    advice: {
      state: "unavailable",
      text: null,
      reason: "the alert of each rule has the advice for that rule",
    },
    links: [],
    members: members.map(toMember),
    howToSilence:
      zones.size === 1 ? `${LONGWATCH} silences add --zone ${zoneId} --for 30m --reason 'why'` : null,
    howToList: `${LONGWATCH} alerts list --group ${alertId}`,
  });
}

function toMember({
  zoneId,
  zoneName,
  ruleId,
  severity,
  windowCount,
  windowMinutes,
  baseline,
  sources,
}: AlertSpike) {
  const finding = sources == null ? {} : { finding: describeSources(sources).finding };
  return {
    zoneId,
    zoneName,
    ruleId,
    severity,
    count: windowCount,
    windowMinutes,
    usual: baseline,
    ...finding,
  };
}

function sumCounts(members: readonly AlertSpike[]) {
  const sum = (read: (spike: AlertSpike) => number) => members.reduce((total, one) => total + read(one), 0);
  const count = sum((one) => one.windowCount);
  const usual = sum((one) => one.baseline);
  return {
    windowMinutes: largest(members, (one) => one.windowMinutes),
    count,
    usual,
    threshold: sum((one) => one.threshold),
    score: largest(members, (one) => one.score),
    peak: sum((one) => one.peak),
    times: usual > 0 ? count / usual : null,
  };
}

function describeGroup(
  members: readonly AlertSpike[],
  zones: ReadonlySet<number>,
  state: AlertRecord["state"],
): string {
  const where = zones.size === 1 ? nameZone([...zones][0] ?? 0, members[0]?.zoneName) : `${zones.size} zones`;
  const what = nameMembers(members);
  if (state === "resolved") return `Flood over: ${what} in ${where} are back to normal`;
  const named = members
    .slice(0, NAMED)
    .map(({ ruleId, windowCount, sources }) =>
      sources == null
        ? `${ruleId} (${formatWhole(windowCount)})`
        : describeSources(sources).title.toLowerCase(),
    );
  const rest = members.length - named.length;
  const more = rest > 0 ? ` and ${formatWhole(rest)} more` : "";
  return `Flood: ${what} in ${where} are spiking at once: ${named.join(", ")}${more}`;
}

/** `5 rules and sources`. */
function nameMembers(members: readonly AlertSpike[]): string {
  const rules = members.filter(({ sources }) => sources == null).length;
  if (rules === 0) return "sources";
  const named = many(rules, "rule");
  return rules === members.length ? named : `${named} and sources`;
}

function largest(members: readonly AlertSpike[], read: (spike: AlertSpike) => number): number {
  return members.reduce((most, one) => Math.max(most, read(one)), Number.NEGATIVE_INFINITY);
}

function sumActions(members: readonly AlertSpike[]): AlertMessage["actions"] {
  const counts = { blocked: 0, logged: 0, challenged: 0, other: 0 };
  for (const { evidence } of members)
    for (const { value, count } of evidence.top.action) counts[classifyAction(value)] += count;
  return counts;
}

function mergeTops(members: readonly AlertSpike[]): AlertMessage["top"] {
  return {
    ips: mergeTop(members, "ip"),
    asns: mergeTop(members, "asn"),
    countries: mergeTop(members, "country"),
    paths: mergeTop(members, "path"),
    userAgents: mergeTop(members, "ua"),
    ja4s: mergeTop(members, "ja4"),
  };
}

/** The commonest values of all members; a share is of the events that were looked at. */
function mergeTop(members: readonly AlertSpike[], dimension: keyof AlertSpike["evidence"]["top"]) {
  const counts = new Map<string, number>();
  let looked = 0;
  for (const { evidence } of members) {
    const values = evidence.top[dimension];
    for (const { value, count } of values) counts.set(value, (counts.get(value) ?? 0) + count);
    const [most] = values;
    if (most !== undefined && most.share > 0) looked += most.count / most.share;
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, TOP)
    .map(([value, count]) => ({ value, count, share: looked > 0 ? Math.min(count / looked, 1) : 0 }));
}

/** Aligned at their ends, which are the same minute or nearly so. */
function sumSparklines(members: readonly AlertSpike[]): number[] {
  const length = largest(members, ({ evidence }) => evidence.sparkline.length);
  const sums = Array<number>(Math.max(length, 0)).fill(0);
  for (const { evidence } of members) {
    const offset = sums.length - evidence.sparkline.length;
    for (const [index, count] of evidence.sparkline.entries())
      sums[offset + index] = (sums[offset + index] ?? 0) + count;
  }
  return sums;
}
