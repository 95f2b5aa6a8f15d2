import { isSentByFew } from "#model/few-addresses.ts";
import { type Severity, WINDOWS } from "#model/kinds.ts";
import { learningUntil } from "#model/learning.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { countSenders } from "../count-senders.ts";
import type { Episode } from "../episode.ts";
import { gradeSpike } from "../grade-spike.ts";
import { findMembership } from "../incidents/member-share.ts";
import type { SpikePolicy } from "../policy.ts";
import { createSeriesWatch, passMinutes, type SeriesWatch, takeMinute } from "../series-watch.ts";
import type { MinuteEvent } from "../sources/count-hour.ts";
import { createSourceWatch } from "../sources/source-watch.ts";
import type { VerdictEvidence } from "../verdict/evidence.ts";
import { type HeldMinutes, holdMessages } from "./hold-messages.ts";
import { createChangeReplay } from "./replay-changes.ts";
import { createIncidentReplay } from "./replay-incidents.ts";
import { createVerdictReplay, type RecordedEvent } from "./replay-verdicts.ts";
import type { ReplayedMessage } from "./replayed-message.ts";
import { createTeller, type Tellable } from "./tell-alerts.ts";

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
  readonly late?: HeldMinutes | null;
  /** Judges what an alert is. Left out: alerts have no verdict. */
  readonly judge?: (evidence: VerdictEvidence) => StoredVerdict;
}

/** Minutes that are never reached. */
const NOTHING_LATE: HeldMinutes = { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY };

interface FollowedRule {
  readonly ruleId: string;
  readonly watch: SeriesWatch;
  /** The values of the open episode. */
  addresses: number;
  mainSenders: number;
  severity: Episode["severity"];
  /** The name of the incident that the episode is a member of; undefined before it was asked. */
  incident: string | null | undefined;
}

/**
 * Replays the events of one zone through the detectors of rules and of sources, minute by minute, as the service runs
 * them. Nothing is judged with later events.
 */
export function createZoneReplay({ fewAddresses, late, judge, ...policy }: ReplayPolicy): ZoneReplay {
  const sources = createSourceWatch({ withRules: true });
  const rules = new Map<string, FollowedRule>();
  const messages: ReplayedMessage[] = [];
  const verdicts = judge === undefined ? null : createVerdictReplay(judge);
  const teller = holdMessages(
    createTeller((message) => messages.push(verdicts?.follow(message) ?? message)),
    late ?? NOTHING_LATE,
  );
  const incidents = createIncidentReplay(teller, membersOf);
  const changes = createChangeReplay(teller);
  // As in the service, a zone without a day of history is not judged.
  const learning = { ...policy, floor: Number.POSITIVE_INFINITY };
  let isLearning = true;
  let counts = new Map<string, number>();
  let current: number | null = null;
  let firstMinute = 0;

  function take(event: RecordedEvent, minute: number): void {
    if (current === null) firstMinute = minute;
    else if (minute > current) closeUntil(minute);
    current = minute;
    const ruleId = event.ruleId ?? "";
    counts.set(ruleId, (counts.get(ruleId) ?? 0) + 1);
    sources.take(event, minute);
    incidents.take({ ...event, minute });
    verdicts?.take(event, minute);
    if (event.action !== undefined) changes.take(event, event.action, minute);
  }

  function closeUntil(minute: number): void {
    for (let at = current ?? minute; at < minute; at += 1) {
      if (at > (current ?? at) && !isAnyOpen() && incidents.open().length === 0) break;
      closeMinute(at);
    }
    sources.closeUntil(minute);
    messages.push(...(verdicts?.lookUntil(minute) ?? []));
  }

  function isAnyOpen(): boolean {
    for (const { watch } of rules.values()) if (watch.episode !== null) return true;
    return false;
  }

  function closeMinute(minute: number): void {
    const hasNew = sources
      .closeUntil(minute + 1)
      .map((fired) => incidents.follow(fired))
      .includes(true);
    const judgedFrom = learningUntil(firstMinute) ?? firstMinute;
    if (isLearning && minute >= judgedFrom) {
      isLearning = false;
      for (const { watch } of rules.values()) passMinutes(watch, judgedFrom, learning, () => undefined);
    }
    const judged = isLearning ? learning : policy;
    for (const [ruleId, count] of counts) {
      const rule = rules.get(ruleId) ?? follow(ruleId);
      takeMinute(rule.watch, minute, count, judged, () => close(rule, minute));
    }
    counts = new Map();
    for (const rule of rules.values()) {
      if (rule.watch.episode === null) continue;
      passMinutes(rule.watch, minute + 1, judged, () => close(rule, minute));
      if (rule.watch.episode !== null) judgeOpen(rule, rule.watch.episode, { minute, hasNew });
    }
    incidents.tell(minute);
  }

  function follow(ruleId: string): FollowedRule {
    const watch = createSeriesWatch();
    const rule: FollowedRule = {
      ruleId,
      watch,
      addresses: 0,
      mainSenders: 0,
      severity: "warning",
      incident: undefined,
    };
    rules.set(ruleId, rule);
    return rule;
  }

  function judgeOpen(
    rule: FollowedRule,
    episode: Episode,
    { minute, hasNew }: { minute: number; hasNew: boolean },
  ): void {
    const byWindow = sources.counter.addressesOfRule(rule.ruleId, minute);
    rule.addresses = Math.max(rule.addresses, byWindow[WINDOWS.indexOf(episode.windowMinutes)] ?? 0);
    const { score } = episode;
    const addresses = rule.addresses === 0 ? null : rule.addresses;
    const { severity, gradedBy } = gradeSpike({ score, z: policy.z, addresses, before: rule.severity });
    rule.severity = severity;
    const one = toTellable(rule, episode);
    const isTold = teller.isTold(one.name);
    const isCompared = rule.incident === undefined || (rule.incident === null && hasNew);
    if (isCompared || (!isTold && rule.mainSenders < fewAddresses)) {
      const from = minute - episode.windowMinutes;
      const isOfRule = (event: MinuteEvent) => event.minute > from && (event.ruleId ?? "") === rule.ruleId;
      const events = incidents.hour(minute).filter(isOfRule);
      if (isCompared) rule.incident = findMembership(events, incidents.open())?.name ?? null;
      const sent = events.flatMap(({ ip }) => (ip === null || ip === "" ? [] : { ip, events: 1 }));
      rule.mainSenders = Math.max(rule.mainSenders, countSenders(sent).main);
    }
    if (rule.incident !== null) return;
    const facts = { severity: rule.severity, addresses, mainSenders: rule.mainSenders, gradedBy };
    const isSmall = isSentByFew(facts, fewAddresses);
    if (!isSmall || isTold) teller.update(minute + 1, one);
  }

  function close(rule: FollowedRule, minute: number): void {
    teller.end(minute + 1, toTellable(rule, null));
    Object.assign(rule, { addresses: 0, mainSenders: 0, severity: "warning", incident: undefined });
  }

  function membersOf(incident: string): string[] {
    return [...rules.values()].filter((rule) => rule.incident === incident).map(({ ruleId }) => ruleId);
  }

  return {
    take,
    finish() {
      if (current !== null) closeUntil(current + 1);
      changes.finish();
      if (late != null) teller.finish();
      return messages.toSorted((a, b) => a.at - b.at);
    },
  };
}

function toTellable({ ruleId, severity }: FollowedRule, episode: Episode | null): Tellable {
  const shown: Severity = episode?.kind === "new-rule" ? "info" : severity;
  return {
    name: `rule ${ruleId}`,
    severity: shown,
    subject: "rule",
    attackers: [],
    rules: [ruleId],
    newest: 0,
  };
}
