/** Detects rules whose action changed. */

import { z } from "zod";
import type { Database, Queryable } from "#db/client.ts";
import {
  type ChangesRow,
  closeChanges,
  readActionCounts,
  readChanges,
  readRuleActions,
  readSilentRules,
} from "#db/detection/rule-changes.ts";
import { collectEvidence, noEvidence } from "#db/detection/spike-evidence.ts";
import { openSpike, readSearchedThrough, updateSpike } from "#db/detection/spikes.ts";
import { readActiveRules, readTrend } from "#db/detection/trends.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createActionWatch, mergeChanges, type NewChange } from "#detection/rules/action-watch.ts";
import {
  createZoneLevel,
  HISTORY_HOURS,
  judgeSilence,
  LEAST_EVENTS,
  LEAST_MISSING,
  LEAST_SILENT_MINUTES,
  LEVEL_MINUTES,
  type LevelOf,
  profileHours,
} from "#detection/rules/silence-watch.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { readThrough, viewZone, type ZoneView } from "#detection/rules/zone-view.ts";
import type { JobContext } from "#jobs/context.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import { keyOf } from "#model/fingerprint.ts";
import { CHANGE_KINDS, type ChangeKind } from "#model/kinds.ts";
import { changesRule, OPEN_DAYS } from "#model/rules.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";

/** Minutes that are read again for late events. A process reads more in its first run. */
const OVERLAP_MS = 15 * MINUTE_MS;
const FIRST_RUN_MS = DAY_MS;

type DetectRuleChangesDeps = Pick<JobContext, "database" | "clock" | "log" | "afterSpikes">;

/**
 * Finds rules that begin to block or to log, and rules that fall silent or have events again. Everything is derived from
 * rows, so any replica and any later run come to the same result.
 */
export function createDetectRuleChangesJob({
  database,
  clock,
  log,
  afterSpikes,
}: DetectRuleChangesDeps): AnyJob {
  const { db } = database;
  let judgedMs: number | null = null;
  return defineJob({
    name: "detect-rule-changes",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 120_000,
    run: oneAtATime(async () => {
      const nowMs = clock();
      const fromMs = judgedMs === null ? nowMs - FIRST_RUN_MS : judgedMs - OVERLAP_MS;
      let [closed, stored] = [0, 0];
      for (const kind of CHANGE_KINDS) {
        closed += await closeChanges(db, { kind, openedBeforeMs: nowMs - OPEN_DAYS[kind] * DAY_MS, nowMs });
        const rows = await readChanges(db, { kind, closedAfterMs: nowMs - REPORTED_MS });
        const isSilence = kind === "silent-rule";
        const found = isSilence
          ? await findSilentRules(db, nowMs)
          : await findFlips(db, rows, { fromMs, nowMs });
        const ended = new Map<number, ReadonlySet<string>>();
        for (const row of isSilence ? rows.filter(({ isOpen }) => isOpen) : [])
          ended.set(row.zoneId, new Set(await findSpeaking(db, row, nowMs)));
        const byZone = Map.groupBy(found, ({ zoneId }) => zoneId);
        for (const zoneId of new Set([...byZone.keys(), ...ended.keys()])) {
          const changes = (byZone.get(zoneId) ?? []).map(({ zoneId: _zone, ...change }) => change);
          const zone = { zoneId, kind, found: changes, ended: ended.get(zoneId) ?? new Set() };
          if (await storeChanges(database, zone, clock)) stored += 1;
        }
      }
      judgedMs = nowMs;
      if (closed + stored === 0) return "no rule changed its action, fell silent or has events again";
      log.info({ zones: stored, closed }, "rule changes detected");
      await afterSpikes();
      return undefined;
    }),
  });
}

/** Four surprises are the least that can prove a change, which ten of thirty events may already have done. */
const RARE = { atLeast: 4, share: 0.35 };
/** Maximum number of rules that are judged in one run, those with the rarest action first. */
const RULES_PER_RUN = 300;
/** The newest events of a rule. In so many usual ones every run of surprises ends. */
const EVENTS_PER_RULE = 500;

/**
 * Finds rules that begin to block or to log. A rule is judged whenever it has an event of the action that is rare for it
 * in [fromMs, nowMs), from its stored events and hours.
 */
async function findFlips(
  db: Queryable,
  rows: readonly ChangesRow[],
  { fromMs, nowMs }: { fromMs: number; nowMs: number },
): Promise<(NewChange & { readonly zoneId: number })[]> {
  const changed = new Map(
    rows.flatMap(({ zoneId, changes }) =>
      changes.map((change) => [keyOf({ zoneId, ruleId: change.ruleId }), { zoneId, ...change }] as const),
    ),
  );
  // A run of surprises may be a week old, and what was usual before it is of another week.
  const fromHour = Math.floor((nowMs - 2 * REPORTED_MS) / HOUR_MS);
  const scope = { fromMs, daysFromMs: nowMs - REPORTED_MS, fromHour, limit: RULES_PER_RUN, ...RARE };
  const counts = await readActionCounts(db, { ...scope, changed: [...changed.values()] });
  if (counts.length === 0) return [];
  const watch = createActionWatch();
  for (const { hours, ...rule } of counts) {
    const { since, foundAt = 0 } = changed.get(keyOf(rule)) ?? {};
    watch.restore(
      keyOf(rule),
      hours.map(([hour, stopped, logged]) => ({ hour, stopped, events: stopped + logged })),
      since === undefined ? undefined : { since, foundAt: Math.floor(foundAt / MINUTE_MS) },
    );
  }
  const events = await readRuleActions(db, counts, {
    afterMs: nowMs - REPORTED_MS,
    limit: EVENTS_PER_RULE,
    atLeast: RARE.atLeast,
  });
  // The last one of a rule counts: it may have changed and changed back.
  const flips = new Map<string, NewChange & { readonly zoneId: number }>();
  for (const { zoneId, ruleId, minute, action, ip } of events) {
    const key = keyOf({ zoneId, ruleId });
    const found = watch.take(key, classifyAction(action), toSourceAddress(ip), minute);
    if (found === null) continue;
    const { since, minute: _minute, ruleId: _key, ...flip } = found;
    flips.set(key, { zoneId, ruleId, since, flip });
  }
  return [...flips.values()];
}

const WEEK_MS = HISTORY_HOURS * HOUR_MS;
/** At the busiest time of a day more is missing than on average. */
const LEAST_ON_AVERAGE = LEAST_MISSING / 8;
/** Maximum number of rules that are judged in one run, those that miss most first. */
const SILENT_RULES_PER_RUN = 1_000;

/**
 * Returns the rules of the zone's open spike that have events again: any since the last one of them fell silent, because
 * earlier ones were seen then.
 */
async function findSpeaking(db: Queryable, { zoneId, changes }: ChangesRow, nowMs: number) {
  const silent = changes.filter(({ endedAt }) => endedAt === null);
  const since = Math.max(...silent.map((one) => one.since));
  return readActiveRules(db, zoneId, { fromMs: (since + 1) * MINUTE_MS, toMs: nowMs });
}

/** Finds rules that have no events although they usually do. Hours that are not wholly stored are never silence. */
async function findSilentRules(
  db: Queryable,
  nowMs: number,
): Promise<(NewChange & { readonly zoneId: number })[]> {
  const silent = await readSilentRules(db, {
    nowMs,
    daysFromMs: nowMs - 2 * WEEK_MS,
    atLeast: LEAST_EVENTS,
    missing: LEAST_ON_AVERAGE,
    lastFromMs: nowMs - WEEK_MS,
    lastToMs: nowMs - LEAST_SILENT_MINUTES * MINUTE_MS,
    limit: SILENT_RULES_PER_RUN,
  });
  if (silent.length === 0) return [];
  const covered = await readSearchedThrough(db, { afterMs: nowMs - 2 * WEEK_MS - HOUR_MS, untilMs: nowMs });
  const byZone = Map.groupBy(covered, ({ zoneId }) => zoneId);
  const found: (NewChange & { readonly zoneId: number })[] = [];
  for (const [zoneId, rules] of Map.groupBy(silent, (one) => one.zoneId)) {
    const view = viewZone(byZone.get(zoneId) ?? [], nowMs);
    const through = readThrough(view, nowMs);
    if (!view.isReady || through === null) continue;
    const { isUnknownHour } = view;
    const gaps = rules.map(({ ruleId, lastMinute, hours }) => {
      const counts = new Map(hours);
      const lastHour = Math.floor(lastMinute / 60);
      const week = { lastHour, isUnknownHour, countOf: (hour: number) => counts.get(hour) ?? 0 };
      return { ruleId, through, isUnknownHour, lastMinute, profile: profileHours(week) };
    });
    // The zone's own hours are read only for rules that would be silent in a zone as busy as usual.
    const possible = gaps.filter((gap) => judgeSilence({ ...gap, levelOf: () => 1 }) !== null);
    if (possible.length === 0) continue;
    const levelOf = await readLevel(db, zoneId, { through, isUnknownHour });
    for (const { ruleId, ...gap } of possible) {
      const expected = judgeSilence({ ...gap, levelOf });
      if (expected !== null) found.push({ zoneId, ruleId, since: gap.lastMinute, expected });
    }
  }
  return found;
}

async function readLevel(
  db: Queryable,
  zoneId: number,
  { through, isUnknownHour }: Pick<ZoneView, "isUnknownHour"> & { through: number },
): Promise<LevelOf> {
  const openHour = Math.floor(through / 60);
  const read = async (width: 60 | 3_600, from: number, to: number) => {
    const stepMs = width * 1_000;
    const span = { width, fromMs: from * stepMs, toMs: to * stepMs };
    const buckets = await readTrend(db, { zoneId, ruleId: null, ...span });
    return new Map(buckets.map(({ startsAt, total }) => [startsAt / stepMs, total]));
  };
  const hours = await read(3_600, openHour - HISTORY_HOURS, openHour);
  const minutes = await read(60, through - LEVEL_MINUTES, through);
  return createZoneLevel({
    lastHour: openHour - 1,
    isUnknownHour,
    countOf: (hour) => hours.get(hour) ?? 0,
    through,
    countAt: (minute) => minutes.get(minute) ?? 0,
  });
}

/** A change that was reported is not reported again for so long, also if its spike was closed. */
const REPORTED_MS = 8 * DAY_MS;

interface ChangesOfZone {
  readonly zoneId: number;
  readonly kind: ChangeKind;
  /** Changes that may be stored already, by another replica. */
  readonly found: readonly NewChange[];
  /** Rules whose change is over. */
  readonly ended: ReadonlySet<string>;
}

/**
 * Adds changes to the zone's open spike, or opens one, because a zone that is switched as a whole must not be one alert
 * for each rule. The spike closes when all of its changes are over. Returns whether anything was stored. Of two replicas
 * that found the same change one stores it.
 */
function storeChanges(
  database: Database,
  { zoneId, kind, found, ended }: ChangesOfZone,
  clock: () => number,
): Promise<boolean> {
  return inTransaction(database, async ({ tx }) => {
    const rows = await readChanges(tx, { kind, zoneId, closedAfterMs: clock() - REPORTED_MS });
    // Read under the lock: raise-alerts compares it with the time of the last message, which it writes under the same lock.
    const foundAt = clock();
    const open = rows.find(({ isOpen }) => isOpen) ?? null;
    const known = rows.flatMap(({ changes }) => changes);
    const merged = mergeChanges({ open: open?.changes ?? [], known, found, ended, atMs: foundAt });
    if (merged === null) return false;
    const { changes, isOver } = merged;
    const at = new Date(foundAt);
    const events = changes.reduce(
      (sum, { flip, endedAt }) => sum + (endedAt === null ? (flip?.events ?? 0) : 0),
      0,
    );
    const counts = { windowCount: events, peak: events };
    const times = { lastActiveAt: at, judgedThrough: at };
    if (open !== null)
      return updateSpike(tx, open.id, { changes, ...counts, ...times, closedAt: isOver ? at : null });
    const [first, ...others] = changes;
    if (first === undefined) return false;
    const fromMs = first.since * MINUTE_MS;
    const scope = { zoneId, ruleId: first.ruleId, fromMs, sinceMs: fromMs, toMs: foundAt, sparkline: [] };
    const isOfOne = others.length === 0 && first.flip !== undefined;
    const opened = await openSpike(tx, {
      zoneId,
      kind,
      ruleId: changesRule(kind),
      severity: "warning",
      openedAt: at,
      changes,
      // There is no window and no threshold: a change has no size.
      windowMinutes: 60,
      baseline: 0,
      threshold: 0,
      score: 0,
      ...counts,
      ...times,
      evidence: isOfOne ? await collectEvidence(tx, scope) : noEvidence(scope),
    });
    return opened !== null;
  });
}
