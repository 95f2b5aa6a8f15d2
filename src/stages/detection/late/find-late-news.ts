import { attackerIdOf, isActive, QUIET_MINUTES, type SeriesKey } from "#model/fingerprint.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import type { Episode } from "../episode.ts";
import type { Attacker } from "../incidents/attacker.ts";
import type { Incident } from "../incidents/incident.ts";
import { TESTED_MINUTES } from "../plan-tick.ts";
import { toMinute } from "../stored-episode.ts";

/** A spike that is stored, as far as late findings are compared with it. */
export interface KnownSpike {
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
    const fresh = compared.filter(({ attacker, known }) => isNew(known, attacker.since));
    for (const { attacker, known } of fresh) {
      if (attacker.role === "facet") continue;
      newAttackers.push(attacker);
      if (known.some(({ row }) => isAttacking(row, attacker))) active.add(attackerIdOf(attacker));
    }
    const row = compared.flatMap(({ known }) => known).find((known) => known.row.isLate)?.row;
    return fresh.length > 0 || row !== undefined ? [{ ...one, row }] : [];
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
