/** Finds hours that were copied late, and what is new in them. */
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CopiedHour } from "#model/covered-hour.ts";
import { attackerIdOf, isActive, QUIET_MINUTES, type SeriesKey } from "#model/fingerprint.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import { TESTED_MINUTES } from "./assess-series.ts";
import type { Episode } from "./episode.ts";
import type { Attacker, Incident } from "./incidents/incident.ts";
import { toMinute } from "./stored-episode.ts";

/** The platform shows an event for 72 hours. What a person brings from elsewhere is not judged. */
const LOOKBACK_HOURS = 96;
/** An hour is judged late only if it ended so long ago. Until then the detectors may still judge it. */
const SETTLED_MINUTES = 20;
/** A part of a long outage: more events than this are judged in several parts. */
const MAX_EVENTS = 2_000_000;

/** Hours [from, to) that have to be judged, and the minutes [fromMinute, toMinute) that nobody has judged of them. */
export interface LateSpan {
  readonly from: number;
  readonly to: number;
  readonly fromMinute: number;
  readonly toMinute: number;
  /** False if hours after `to` have to be judged, too. */
  readonly isLast: boolean;
  /** Whether hours of it gained events while the hour after it was judged. */
  readonly isRecent: boolean;
}

/** Returns the time in which hours begin that may be judged late: [fromMs, toMs). */
export function judgeableHours(nowMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.floor((nowMs - SETTLED_MINUTES * MINUTE_MS) / HOUR_MS) * HOUR_MS;
  return { fromMs: toMs - LOOKBACK_HOURS * HOUR_MS, toMs };
}

/**
 * Returns the hours of a zone to judge late; null if there are none, or if one of them is still being copied. A judged hour
 * that follows an unjudged one is judged again, because its thresholds lacked the events of the unjudged hour. If an outage
 * ends within an hour, the end of that hour is awaited, so that there is one message about the outage. `all` are the hours
 * from the oldest judgeable one to now; `settled` is the first hour that cannot be judged yet.
 */
export function findLateSpan(all: readonly CopiedHour[], settled: number): LateSpan | null {
  const hours = all.filter(({ hour }) => hour < settled);
  const next = all.find(({ hour }) => hour === settled);
  const first = hours.findIndex(({ isCopied, isJudged }) => isCopied && !isJudged);
  const newest = hours.findLastIndex(({ isCopied }) => isCopied);
  if (first === -1) return null;
  // If the platform refuses the search, hours are sealed some time after their end. They wait for nothing else.
  const isSearched = hours.findLastIndex((hour) => hour.isSearched) >= newest;
  const judgeable = hours.slice(first, isSearched ? hours.length : newest + 1);
  if (judgeable.some(({ isCopied, isGap }) => !isCopied && !isGap)) return null;
  let [events, taken] = [0, 0];
  for (; taken < judgeable.length && (taken === 0 || events < MAX_EVENTS); taken += 1)
    events += judgeable[taken]?.events ?? 0;
  const span = judgeable.slice(0, taken);
  const to = (span.at(-1)?.hour ?? 0) + 1;
  const isLast = taken === judgeable.length;
  if (isLast && span.at(-1)?.isJudged === false && (next?.rulesFrom ?? 0) > settled * 60) return null;
  return {
    from: span[0]?.hour ?? 0,
    to,
    ...unjudgedMinutes(span),
    isLast,
    isRecent: span.some(({ lastNewAt }) => (lastNewAt ?? 0) >= to * HOUR_MS + SETTLED_MINUTES * MINUTE_MS),
  };
}

function unjudgedMinutes(span: readonly CopiedHour[]): Pick<LateSpan, "fromMinute" | "toMinute"> {
  const unjudged = span.filter(({ isJudged, isGap }) => !isJudged && !isGap);
  const [first, last] = [unjudged[0], unjudged.at(-1)];
  if (first === undefined || last === undefined) return { fromMinute: 0, toMinute: 0 };
  const [begin, end] = [first.hour * 60, last.hour * 60 + 60];
  const isBegun = (first.rulesFrom ?? end) <= begin && (first.rulesThrough ?? end) < begin + 60;
  const isResumed = (last.rulesThrough ?? 0) >= end && (last.rulesFrom ?? 0) > last.hour * 60;
  return {
    fromMinute: isBegun ? (first.rulesThrough ?? begin) : begin,
    toMinute: isResumed ? (last.rulesFrom ?? end) : end,
  };
}

/** A spike that is stored, as far as late findings are compared with it. */
interface KnownSpike {
  readonly id: number;
  readonly ruleId: string;
  readonly isLate: boolean;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly judgedThrough: Date;
  readonly sources: StoredSources | null;
}

/** An incident after minutes were judged; `closedAt` is null while it is open. */
export interface FollowedIncident {
  readonly incident: Incident;
  readonly closedAt: number | null;
}

/** A rule's spike; `closedAt` is null if it is open at the end of the hours. */
export interface RuleFinding extends SeriesKey {
  readonly episode: Episode;
  readonly closedAt: number | null;
}

/** News of hours that were judged late, of which nobody was notified. */
export interface LateNews {
  /** Each finding that is stored, with the late spike that it replaces. */
  readonly incidents: readonly (FollowedIncident & { readonly row: KnownSpike | undefined })[];
  readonly rules: readonly (RuleFinding & { readonly row: KnownSpike | undefined })[];
  /** Those of them that are new, the newest last. */
  readonly newAttackers: readonly Attacker[];
  readonly newRules: readonly RuleFinding[];
  /** The names of the attackers and rules that have an open spike by now, which notifies as usual. */
  readonly active: ReadonlySet<string>;
}

/**
 * Compares what hours from the minute `from` on show with the spikes that are stored. What a live spike has shown from its
 * beginning, give or take the minutes that a tick judges, is not new. What began before `from` was judged before.
 */
export function findLateNews(
  {
    incidents,
    rules,
  }: { readonly incidents: readonly FollowedIncident[]; readonly rules: readonly RuleFinding[] },
  rows: readonly KnownSpike[],
  from: number,
): LateNews {
  const attacks = rows.flatMap((row) =>
    (row.sources?.findings ?? []).map((finding) => ({
      id: attackerIdOf(finding),
      row,
      since: finding.since,
      until: (finding.lastFiredAt || toMinute(row.judgedThrough)) + QUIET_MINUTES,
    })),
  );
  const spikes = rows.map((row) => ({
    id: row.ruleId,
    row,
    since: toMinute(row.openedAt),
    until: row.closedAt === null ? Number.POSITIVE_INFINITY : toMinute(row.closedAt),
  }));
  const overlapping = (known: typeof spikes, id: string, since: number, until: number) =>
    known.filter((one) => one.id === id && one.since <= until && one.until >= since);
  const isNew = (known: typeof spikes, since: number) =>
    since > from && !known.some(({ row, ...one }) => row.isLate || one.since <= since + TESTED_MINUTES);
  const active = new Set<string>();
  const newAttackers: Attacker[] = [];
  const newRules: RuleFinding[] = [];
  const storedIncidents = incidents.flatMap((one) => {
    const compared = one.incident.attackers.map((attacker) => {
      const until = attacker.lastFiredAt + QUIET_MINUTES;
      return { attacker, known: overlapping(attacks, attackerIdOf(attacker), attacker.since, until) };
    });
    const added = compared.filter(({ attacker, known }) => isNew(known, attacker.since));
    for (const { attacker, known } of added) {
      if (attacker.role === "facet") continue;
      newAttackers.push(attacker);
      if (known.some(({ row }) => isAttacking(row, attacker))) active.add(attackerIdOf(attacker));
    }
    const row = compared.flatMap(({ known }) => known).find((known) => known.row.isLate)?.row;
    return added.length > 0 || row !== undefined ? [{ ...one, row }] : [];
  });
  const storedRules = rules.flatMap((one) => {
    const { openedAt } = one.episode;
    const known = overlapping(spikes, one.ruleId, openedAt, one.closedAt ?? Number.POSITIVE_INFINITY);
    const row = known.find((other) => other.row.isLate)?.row;
    if (isNew(known, openedAt)) {
      newRules.push(one);
      if (known.some((other) => other.row.closedAt === null)) active.add(one.ruleId);
    } else if (row === undefined) return [];
    return [{ ...one, row }];
  });
  return { incidents: storedIncidents, rules: storedRules, newAttackers, newRules, active };
}

function isAttacking({ closedAt, judgedThrough, sources }: KnownSpike, attacker: Attacker): boolean {
  const id = attackerIdOf(attacker);
  const finding = sources?.findings.find((one) => attackerIdOf(one) === id);
  return closedAt === null && finding !== undefined && isActive(finding, toMinute(judgedThrough) - 1);
}
