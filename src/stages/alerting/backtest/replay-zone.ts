import { MINUTE_MS } from "#lib/units.ts";
import { MANY_ADDRESSES } from "#model/few-addresses.ts";
import { WINDOWS } from "#model/kinds.ts";
import { learningUntil } from "#model/learning.ts";
import { isSumRule } from "#model/rule-family.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { countSenders } from "#stages/detection/count-senders.ts";
import type { Episode } from "#stages/detection/episode.ts";
import { gradeSpike } from "#stages/detection/grade-spike.ts";
import {
  compareLeads,
  findMembership,
  findSameCause,
  findSummed,
  type LeadRank,
} from "#stages/detection/incidents/member-share.ts";
import type { SpikePolicy } from "#stages/detection/policy.ts";
import {
  createSeriesWatch,
  type PastEpisode,
  passMinutes,
  type SeriesWatch,
  takeMinute,
} from "#stages/detection/series-watch.ts";
import type { MinuteEvent } from "#stages/detection/sources/count-hour.ts";
import { createSourceWatch } from "#stages/detection/sources/source-watch.ts";
import type { VerdictEvidence } from "#stages/detection/verdict/evidence.ts";
import { createAlertReplay, type LateMinutes, type ReplayedSpike } from "./replay-alerts.ts";
import { createFlipReplay } from "./replay-flips.ts";
import { createIncidentReplay, NO_EVIDENCE } from "./replay-incidents.ts";
import type { RecordedEvent } from "./replay-verdicts.ts";
import type { ReplayedMessage } from "./replayed-message.ts";

export interface ZoneReplay {
  /** Takes an event. Minutes never go back. Changes of a rule are looked for only in events that have an action. */
  readonly take: (event: RecordedEvent, minute: number) => void;
  /** Closes the last minute and returns all messages, in the order of time. */
  readonly finish: () => ReplayedMessage[];
}

export interface ReplayPolicy extends SpikePolicy {
  /** A rule's spike of which fewer addresses send most is listed and notifies nobody, unless it pages. */
  readonly fewAddresses: number;
  /** Minutes whose events come at their end. */
  readonly late?: LateMinutes | null;
  /** Judges what an alert is. Left out: alerts have no verdict. */
  readonly judge?: (evidence: VerdictEvidence) => StoredVerdict;
}

interface FollowedRule {
  readonly ruleId: string;
  readonly watch: SeriesWatch;
  /** The values of the open episode; 0 for the id if there is none. */
  id: number;
  addresses: number;
  mainSenders: number;
  severity: Episode["severity"];
  memberOf: number | null;
}

const NO_EPISODE = { id: 0, addresses: 0, mainSenders: 0, severity: "warning", memberOf: null } as const;
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
  // The service does not judge a zone without a day of history. Nor does a back-test.
  const learning = { ...policy, floor: Number.POSITIVE_INFINITY };
  let isLearning = true;
  let counts = new Map<string, number>();
  let current: number | null = null;
  let firstMinute = 0;
  let ids = 0;

  function nextId(): number {
    ids += 1;
    return ids;
  }

  function take(event: RecordedEvent, minute: number): void {
    if (current === null) firstMinute = minute;
    else if (minute > current) closeUntil(minute);
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
    const hasNew = incidents.follow(sources.closeUntil(end));
    const ofSources = incidents.close(minute);
    const judgedFrom = learningUntil(firstMinute) ?? firstMinute;
    if (isLearning && minute >= judgedFrom) {
      isLearning = false;
      for (const { watch } of rules.values()) passMinutes(watch, judgedFrom, learning, () => undefined);
    }
    const judged = isLearning ? learning : policy;
    const close = (rule: FollowedRule) => (episode: PastEpisode) => {
      closed.push(toRuleSpike(rule, episode, episode.closedAt));
      Object.assign(rule, NO_EPISODE);
    };
    for (const [ruleId, count] of counts) {
      const rule = rules.get(ruleId) ?? { ruleId, watch: createSeriesWatch(), ...NO_EPISODE };
      rules.set(ruleId, rule);
      takeMinute(rule.watch, minute, count, judged, close(rule));
    }
    counts = new Map();
    const rising: FollowedRule[] = [];
    for (const rule of rules.values()) {
      if (rule.watch.episode === null) continue;
      passMinutes(rule.watch, end, judged, close(rule));
      if (rule.watch.episode !== null) rising.push(rule);
    }
    judgeOpen(rising, minute, hasNew);
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
  function judgeOpen(rising: readonly FollowedRule[], minute: number, hasNew: boolean): void {
    const fresh = rising.filter(({ id }) => id === 0);
    const compared = hasNew || fresh.length > 0;
    const inHour =
      compared || rising.some(({ mainSenders }) => mainSenders < fewAddresses) ? incidents.hour(minute) : [];
    const byRule = Map.groupBy(inHour, ({ ruleId }) => ruleId ?? "");
    const eventsOf = ({ ruleId, watch }: FollowedRule) =>
      (byRule.get(ruleId) ?? []).filter(
        (event) => event.minute > minute - (watch.episode?.windowMinutes ?? 0),
      );
    for (const rule of rising) grade(rule, rule.watch.episode as Episode, eventsOf(rule), minute);
    for (const rule of fresh.toSorted(byLead)) {
      rule.id = nextId();
      rule.memberOf = null;
    }
    const alone = rising.filter(({ memberOf }) => memberOf === null);
    for (const rule of alone.toSorted(byLead)) {
      const isFresh = fresh.includes(rule);
      if (!isFresh && !hasNew && !isSumRule(rule.ruleId)) continue;
      const own = eventsOf(rule);
      const incident = findMembership(own, incidents.open(), inHour);
      const leads = rising
        .filter((one) => one !== rule && one.memberOf === null && byLead(one, rule) < 0)
        .toSorted(byLead);
      const lead =
        incident === null && (isFresh || isSumRule(rule.ruleId))
          ? (isSumRule(rule.ruleId) ? findSummed : findSameCause)(
              own,
              leads.map((one) => ({ id: one.id, events: eventsOf(one) })),
            )
          : null;
      rule.memberOf = incident?.id ?? lead?.id ?? null;
    }
  }

  function grade(rule: FollowedRule, episode: Episode, own: readonly MinuteEvent[], minute: number): void {
    const byWindow = sources.counter.addressesOfRule(rule.ruleId, minute);
    const sent = own.flatMap(({ ip }) => (ip === null || ip === "" ? [] : [{ ip, events: 1 }]));
    const senders = countSenders(sent);
    if (sent.length === 0 || senders.addresses > 0)
      rule.addresses = Math.max(rule.addresses, byWindow[WINDOWS.indexOf(episode.windowMinutes)] ?? 0);
    const addresses = rule.addresses === 0 ? null : rule.addresses;
    const before = rule.id === 0 ? undefined : rule.severity;
    rule.severity = gradeSpike({ score: episode.score, z: policy.z, addresses, before }).severity;
    if (rule.mainSenders < MANY_ADDRESSES) rule.mainSenders = Math.max(rule.mainSenders, senders.main);
  }

  function toRuleSpike(rule: FollowedRule, episode: Episode, closedAt: number | null): ReplayedSpike {
    const { ruleId, id, addresses, mainSenders, memberOf } = rule;
    const { openedAt, windowMinutes, count, usual, threshold, score, peak, kind } = episode;
    const { severity, gradedBy } = gradeSpike({
      score,
      z: policy.z,
      addresses: addresses === 0 ? null : addresses,
      before: rule.severity,
    });
    return {
      id,
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

const byLead = (one: FollowedRule, other: FollowedRule) => compareLeads(rankOf(one), rankOf(other));

function rankOf({ id, ruleId, watch }: FollowedRule): LeadRank {
  return { id: id === 0 ? null : id, ruleId, score: watch.episode?.score ?? 0 };
}
