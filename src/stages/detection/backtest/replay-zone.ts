import { type Severity, type SourceKind, WINDOWS } from "#model/kinds.ts";
import type { Episode } from "../episode.ts";
import { gradeSpike, isGradedByAddresses } from "../grade-spike.ts";
import type { SpikePolicy } from "../policy.ts";
import { createRiseCounter } from "../raise-severity.ts";
import { createSeriesWatch, passMinutes, type SeriesWatch, takeMinute } from "../series-watch.ts";
import { type SourceEpisode } from "../sources/source-episode.ts";
import type { SourceEvent } from "../sources/source-event.ts";
import { createSourceWatch, QUIET_MINUTES } from "../sources/source-watch.ts";

/** One alert of a replay. Times are the ends of minutes since the epoch. */
export interface ReplayedAlert {
  readonly kind: SourceKind | "rule";
  /** The rule, or the source that led when the alert opened. */
  readonly key: string;
  readonly severity: Severity;
  readonly openedAt: number;
  readonly lastActiveAt: number;
}

export interface ZoneReplay {
  /** Takes an event. Minutes never go back. */
  readonly take: (event: SourceEvent, minute: number) => void;
  /** Closes the last minute and returns all alerts, also those that are still open. */
  readonly finish: () => ReplayedAlert[];
}

interface FollowedRule {
  readonly ruleId: string;
  readonly watch: SeriesWatch;
  /** The values of the open episode. */
  companions: number;
  addresses: number;
  severity: Episode["severity"];
}

/**
 * Replays the events of one zone through the detectors of rules and of sources, minute by minute, as the service runs
 * them. Nothing is judged with later events.
 */
export function createZoneReplay(policy: SpikePolicy): ZoneReplay {
  const sources = createSourceWatch({ withRules: true });
  const rules = new Map<string, FollowedRule>();
  const alerts: ReplayedAlert[] = [];
  // As in the service, a zone without a day of history is not judged.
  const learning = { ...policy, floor: Number.POSITIVE_INFINITY };
  let isLearning = true;
  let counts = new Map<string, number>();
  let current: number | null = null;
  let firstMinute = 0;

  function take(event: SourceEvent, minute: number): void {
    if (current === null) firstMinute = minute;
    else if (minute > current) closeUntil(minute);
    current = minute;
    const ruleId = event.ruleId ?? "";
    counts.set(ruleId, (counts.get(ruleId) ?? 0) + 1);
    sources.take(event, minute);
  }

  function closeUntil(minute: number): void {
    for (let at = current ?? minute; at < minute; at += 1) {
      if (at > (current ?? at) && !isAnyOpen()) break;
      closeMinute(at);
    }
    for (const ended of sources.closeUntil(minute)) alerts.push(toSourceAlert(ended));
  }

  function isAnyOpen(): boolean {
    for (const { watch } of rules.values()) if (watch.episode !== null) return true;
    return false;
  }

  function closeMinute(minute: number): void {
    const judgedFrom = firstMinute + QUIET_MINUTES;
    if (isLearning && minute >= judgedFrom) {
      isLearning = false;
      for (const { watch } of rules.values()) passMinutes(watch, judgedFrom, learning, () => undefined);
    }
    const judged = isLearning ? learning : policy;
    for (const [ruleId, count] of counts) {
      const rule = rules.get(ruleId) ?? follow(ruleId);
      takeMinute(rule.watch, minute, count, judged, (episode) => close(rule, episode));
    }
    counts = new Map();
    let changed = false;
    for (const rule of rules.values()) {
      if (rule.watch.episode === null) continue;
      passMinutes(rule.watch, minute + 1, judged, (episode) => close(rule, episode));
      changed ||= rule.watch.episode !== null;
    }
    if (changed) gradeOpen(minute);
  }

  function follow(ruleId: string): FollowedRule {
    const rule: FollowedRule = {
      ruleId,
      watch: createSeriesWatch(),
      companions: 0,
      addresses: 0,
      severity: "warning",
    };
    rules.set(ruleId, rule);
    return rule;
  }

  function gradeOpen(minute: number): void {
    const open = [...rules.values()].flatMap((rule) =>
      rule.watch.episode === null ? [] : [{ rule, episode: rule.watch.episode }],
    );
    const rising = createRiseCounter(open.map(({ episode }) => episode));
    for (const { rule, episode } of open) {
      rule.companions = Math.max(rule.companions, rising(episode));
      const strength = { score: episode.score, z: policy.z, companions: rule.companions };
      if (isGradedByAddresses(strength)) {
        const byWindow = sources.counter.addressesOfRule(rule.ruleId, minute);
        rule.addresses = Math.max(rule.addresses, byWindow[WINDOWS.indexOf(episode.windowMinutes)] ?? 0);
      }
      const addresses = rule.addresses === 0 ? null : rule.addresses;
      rule.severity = gradeSpike({ ...strength, addresses, before: rule.severity }).severity;
    }
  }

  function close(rule: FollowedRule, episode: Episode): void {
    alerts.push(toRuleAlert(rule, episode));
    Object.assign(rule, { companions: 0, addresses: 0, severity: "warning" });
  }

  return {
    take,
    finish() {
      if (current === null) return alerts;
      closeUntil(current + 1);
      for (const rule of rules.values())
        if (rule.watch.episode !== null) alerts.push(toRuleAlert(rule, rule.watch.episode));
      const open = sources.episode();
      return open === null ? alerts : [...alerts, toSourceAlert(open)];
    },
  };
}

function toRuleAlert({ ruleId, severity }: FollowedRule, episode: Episode): ReplayedAlert {
  return {
    kind: "rule",
    key: ruleId,
    severity: episode.kind === "new-rule" ? "info" : severity,
    openedAt: episode.openedAt,
    lastActiveAt: episode.lastActiveAt,
  };
}

export function toSourceAlert({
  kind,
  findings,
  severity,
  openedAt,
  lastFiredAt,
}: SourceEpisode): ReplayedAlert {
  const key = findings.find((finding) => finding.kind === kind)?.key ?? "";
  return { kind, key, severity, openedAt, lastActiveAt: lastFiredAt };
}
