import { countSenders, gradeSpike } from "#detection/rules/assess-series.ts";
import type { SpikePolicy } from "#detection/rules/detection-settings.ts";
import type { Episode, PastEpisode } from "#detection/rules/episode.ts";
import { compareLeads, findCompared, joinRules } from "#detection/rules/incidents/member-share.ts";
import {
  createSeriesWatch,
  passMinutes,
  type SeriesWatch,
  takeMinute,
} from "#detection/rules/series-watch.ts";
import { createSourceWatch } from "#detection/rules/sources/source-watch.ts";
import type { MinuteEvent } from "#detection/rules/sources/usual-rules.ts";
import type { VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { MANY_ADDRESSES } from "#model/ip-address.ts";
import { type GradedBy, WINDOWS } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { createAlertReplay, type LateMinutes, type ReplayedSpike } from "./replay-alerts.ts";
import {
  createFlipReplay,
  createIncidentReplay,
  NO_EVIDENCE,
  type ReplayedMessage,
} from "./replay-incidents.ts";
import type { RecordedEvent } from "./replay-verdicts.ts";

export interface ZoneReplay {
  /** Takes an event. Minutes never go back. Changes of a rule are looked for only in events that have an action. */
  readonly take: (event: RecordedEvent, minute: number) => void;
  /** Closes the last minute and returns all messages, in the order of time. */
  readonly finish: () => ReplayedMessage[];
}

export interface ReplayPolicy extends SpikePolicy {
  /** If fewer addresses than this send most of a rule's spike, it is listed and notifies nobody, unless it pages. */
  readonly fewAddresses: number;
  /** Minutes whose events come at their end. */
  readonly late?: LateMinutes | null;
  /** Judges what an alert is. Left out: alerts have no verdict. */
  readonly judge?: (evidence: VerdictEvidence) => StoredVerdict;
}

interface FollowedRule {
  readonly ruleId: string;
  readonly watch: SeriesWatch;
  /** The values of the open episode; its id is null until the end of its first minute. */
  id: number | null;
  addresses: number;
  mainSenders: number;
  severity: Episode["severity"];
  gradedBy: GradedBy;
  memberOf: number | null;
}

const NO_EPISODE = {
  id: null,
  addresses: 0,
  mainSenders: 0,
  severity: "warning",
  gradedBy: "score",
  memberOf: null,
} as const;

/**
 * Replays the events of one zone through the detectors of rules and of sources, minute by minute, as the service runs them, and
 * through its decisions about alerts. Nothing is judged with later events.
 */
export function createZoneReplay({ fewAddresses, late, judge, ...policy }: ReplayPolicy): ZoneReplay {
  const sources = createSourceWatch({ withRules: true });
  const alerts = createAlertReplay({ judge, fewAddresses, late });
  const flips = createFlipReplay(nextId);
  const incidents = createIncidentReplay(nextId, alerts.isBenign);
  const rules = new Map<string, FollowedRule>();
  let counts = new Map<string, number>();
  let current: number | null = null;
  let ids = 0;

  function nextId(): number {
    ids += 1;
    return ids;
  }

  function take(event: RecordedEvent, minute: number): void {
    if (current !== null && minute > current) closeUntil(minute);
    current = minute;
    const ruleId = event.ruleId ?? "";
    counts.set(ruleId, (counts.get(ruleId) ?? 0) + 1);
    sources.take(event, minute);
    incidents.take({ ...event, minute });
    alerts.take(event, minute);
    flips.take(event, minute);
  }

  function closeUntil(minute: number): void {
    for (let at = current ?? minute; at < minute; at += 1) {
      if (at > (current ?? at) && !isAnyOpen()) break;
      closeMinute(at);
    }
    incidents.follow(sources.closeUntil(minute));
  }

  function isAnyOpen(): boolean {
    if (incidents.open().length > 0 || flips.isOpen() || alerts.isOpen()) return true;
    for (const { watch } of rules.values()) if (watch.episode !== null) return true;
    return false;
  }

  function closeMinute(minute: number): void {
    const end = minute + 1;
    const closed: ReplayedSpike[] = [];
    incidents.follow(sources.closeUntil(end));
    const ofSources = incidents.close(minute);
    const close = (rule: FollowedRule) => (episode: PastEpisode) => {
      closed.push(toRuleSpike(rule, episode, episode.closedAt));
      Object.assign(rule, NO_EPISODE);
    };
    for (const [ruleId, count] of counts) {
      const rule = rules.get(ruleId) ?? { ruleId, watch: createSeriesWatch(), ...NO_EPISODE };
      rules.set(ruleId, rule);
      takeMinute(rule.watch, minute, count, policy, close(rule));
    }
    counts = new Map();
    const rising: FollowedRule[] = [];
    for (const rule of rules.values()) {
      if (rule.watch.episode === null) continue;
      passMinutes(rule.watch, end, policy, close(rule));
      if (rule.watch.episode !== null) rising.push(rule);
    }
    judgeOpen(rising, minute);
    const spikes = [
      ...ofSources,
      ...rising.flatMap((rule) =>
        rule.watch.episode === null ? [] : [toRuleSpike(rule, rule.watch.episode, null)],
      ),
      ...closed,
      ...flips.close(minute),
    ];
    if (spikes.length > 0 || alerts.isOpen()) alerts.decide(end, spikes);
  }

  /** Grades open rules, and finds the spikes whose alerts they are part of. */
  function judgeOpen(rising: readonly FollowedRule[], minute: number): void {
    const alone = rising
      .filter(({ memberOf }) => memberOf === null)
      .map((rule) => ({ rule, ruleId: rule.ruleId, id: rule.id, score: rule.watch.episode?.score ?? 0 }));
    const compared = { incidents: incidents.open(), end: minute + 1 };
    const isCompared = findCompared(alone, compared).length > 0;
    const isCounted = rising.some(({ mainSenders }) => mainSenders < fewAddresses);
    const inHour = isCompared || isCounted ? incidents.hour(minute) : [];
    const byRule = Map.groupBy(inHour, ({ ruleId }) => ruleId ?? "");
    const eventsOf = ({ ruleId, watch }: FollowedRule) =>
      (byRule.get(ruleId) ?? []).filter(
        (event) => event.minute > minute - (watch.episode?.windowMinutes ?? 0),
      );
    for (const rule of rising) grade(rule, rule.watch.episode as Episode, eventsOf(rule), minute);
    const joined = joinRules(
      alone.map((one) => ({ ...one, events: isCompared ? eventsOf(one.rule) : [] })),
      { ...compared, inHour },
    );
    for (const one of alone.toSorted(compareLeads)) one.rule.id ??= nextId();
    for (const [{ rule }, lead] of joined) rule.memberOf = "rule" in lead ? lead.rule.id : lead.id;
  }

  function grade(rule: FollowedRule, episode: Episode, own: readonly MinuteEvent[], minute: number): void {
    const byWindow = sources.counter.addressesOfRule(rule.ruleId, minute);
    const sent = own.flatMap(({ ip }) => (ip === null || ip === "" ? [] : [{ ip, events: 1 }]));
    const senders = countSenders(sent);
    if (sent.length === 0 || senders.addresses > 0)
      rule.addresses = Math.max(rule.addresses, byWindow[WINDOWS.indexOf(episode.windowMinutes)] ?? 0);
    const addresses = rule.addresses === 0 ? null : rule.addresses;
    const before = rule.id === null ? undefined : rule.severity;
    Object.assign(rule, gradeSpike({ score: episode.score, z: policy.z, addresses, before }));
    if (rule.mainSenders < MANY_ADDRESSES) rule.mainSenders = Math.max(rule.mainSenders, senders.main);
  }

  function toRuleSpike(rule: FollowedRule, episode: Episode, closedAt: number | null): ReplayedSpike {
    const { ruleId, id, addresses, mainSenders, memberOf, severity, gradedBy } = rule;
    const { openedAt, windowMinutes, count, usual, threshold, score, peak, kind } = episode;
    return {
      id: id ?? nextId(),
      zoneId: 0,
      ruleId,
      kind,
      severity,
      gradedBy,
      memberOf,
      openedAt: new Date(openedAt * MINUTE_MS),
      closedAt: closedAt === null ? null : new Date(closedAt * MINUTE_MS),
      windowMinutes,
      windowCount: count,
      baseline: usual,
      threshold,
      score,
      peak,
      addresses: addresses === 0 ? null : addresses,
      mainSenders: mainSenders === 0 ? null : mainSenders,
      evidence: NO_EVIDENCE,
      attackers: [],
      since: openedAt - windowMinutes,
    };
  }

  return {
    take,
    finish() {
      if (current !== null) closeUntil(current + 1);
      return alerts.finish().toSorted((a, b) => a.at - b.at);
    },
  };
}
