import { z } from "zod";
import { type AnyJob, defineJob, oneAtATime } from "#adapters/queue/define-job.ts";
import {
  type JudgedHour,
  readCopiedHours,
  readUnjudgedZones,
  wasWatchedBefore,
} from "#db/detection/judged-hours.ts";
import { listKnownSources, toKnownSource } from "#db/detection/known-sources.ts";
import {
  readAttacks,
  readSearchedThrough,
  readSpikesBetween,
  readStaleSeries,
} from "#db/detection/spikes.ts";
import { toError } from "#lib/errors.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { CopiedHour } from "#model/covered-hour.ts";
import { createKnownSources } from "#model/known-source.ts";
import { isRuleKind } from "#model/rules.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { TOO_LITTLE_HISTORY } from "#stages/detection/detection-settings.ts";
import { findLateNews } from "#stages/detection/late/find-late-news.ts";
import { findLateSpan, judgeableHours, type LateSpan } from "#stages/detection/late/find-late-span.ts";
import { toMinute } from "#stages/detection/stored-episode.ts";
import { HISTORY_HOURS } from "#stages/detection/thresholds/thresholds.ts";
import { viewAfter } from "#stages/detection/zone-view.ts";
import { followIncidents } from "./judge-incidents.ts";
import { type JudgeLateDeps, releaseLate } from "./raise-late.ts";
import { firstReplayed, type ReplayedHours, replayRules, replaySourceHours } from "./replay-late.ts";
import { storeLate } from "./store-late.ts";

/** A run takes up no further zone after this time, so that the detectors get their turns. */
const RUN_MS = 20_000;
/** The most hours before an outage that are replayed because a spike was open when it began. */
const MOST_LEAD_HOURS = 24;

/**
 * Judges hours whose events were copied after the fact, once all hours from the first of them on are there: a minute with the
 * events before it and the thresholds of its own hour, as the detectors would have done. Everything is derived from rows and
 * written in one transaction per zone. Of two replicas that judge the same hours, the second one finds them judged.
 */
export function createJudgeLateJob(deps: JudgeLateDeps): AnyJob {
  return defineJob({
    name: "judge-late",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 300_000,
    run: oneAtATime(async (_payload, signal) => {
      const { database, log, zoneIds } = deps;
      if (await releaseLate(database, deps, deps.clock())) await deps.afterAlerts();
      const unjudged = await readUnjudgedZones(database.db, judgeableHours(deps.clock()));
      const due = unjudged.filter(({ zoneId }) => zoneIds.includes(zoneId));
      if (due.length === 0) return "every copied hour is judged";
      const startedMs = performance.now();
      let failure: Error | null = null;
      for (const { zoneId } of due) {
        signal.throwIfAborted();
        if (performance.now() - startedMs > RUN_MS) break;
        try {
          await judgeZone(deps, zoneId, signal);
        } catch (thrown) {
          signal.throwIfAborted();
          failure = toError(thrown);
          log.error({ err: failure, zoneId }, "late hours of a zone not judged");
        }
      }
      if (failure !== null) throw failure;
      return undefined;
    }),
  });
}

async function judgeZone(deps: JudgeLateDeps, zoneId: number, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = deps;
  const { db } = database;
  const nowMs = clock();
  // The numbers of events are read first: an event that comes later has its hour judged again.
  const { fromMs: oldestMs, toMs: settledMs } = judgeableHours(nowMs);
  const hours = await readCopiedHours(db, zoneId, { fromMs: oldestMs, toMs: nowMs });
  const span = findLateSpan(hours, settledMs / HOUR_MS);
  if (span === null) return;
  const { from, to } = span;
  const spikes = await readSpikesBetween(db, zoneId, {
    fromMs: (from - MOST_LEAD_HOURS - 2) * HOUR_MS,
    toMs: to * HOUR_MS,
  });
  const first = firstReplayed(spikes, from, MOST_LEAD_HOURS);
  const fromMs = (first - HISTORY_HOURS - 2) * HOUR_MS;
  const stale = await readStaleSeries(db, { fromMs, toMs: to * HOUR_MS });
  // The next roll-up changes the history.
  if (stale.some((one) => one.zoneId === zoneId)) return;
  const stored = [...deps.knownSources(), ...(await listKnownSources(db)).map(toKnownSource)];
  const replayed: ReplayedHours = {
    zoneId,
    from: first,
    to,
    covered: await readSearchedThrough(db, { afterMs: fromMs, untilMs: to * HOUR_MS - 1, zoneId }),
    attacks: await readAttacks(db, { afterMs: fromMs, zoneId }),
    known: createKnownSources(stored, nowMs)(zoneId),
  };
  const mode = deps.sourceMode();
  const ofSources = {
    ...replayed,
    attacks: replayed.attacks.filter(({ ruleId }) => ruleId === SOURCES_RULE),
  };
  const budget = { isOver: () => signal.aborted, counted: new Map<number, number>(), hasCounted: false };
  const fired = mode === "off" ? [] : await replaySourceHours(database, ofSources, budget);
  if (fired === null) return;
  const closed = spikes.filter(
    ({ kind, closedAt }) => isRuleKind(kind) && closedAt !== null && toMinute(closedAt) <= first * 60,
  );
  const rules = await replayRules(database, replayed, {
    closed,
    atLeast: deps.lowestFloor(),
    sensitivityOf: deps.sensitivity,
  });
  const through = to * 60;
  const incidents = await followIncidents(database, replayed, { fired, through }, { open: [], former: [] });
  const news = findLateNews({ incidents, rules }, spikes, from * 60);
  const isHistory = !(await wasWatchedBefore(db, zoneId, from));
  signal.throwIfAborted();
  const isWritten = await storeLate(deps, {
    zoneId,
    span,
    news,
    isHistory,
    isShadow: mode === "shadow",
    known: replayed.known,
    judged: toJudged(hours, span, replayed, deps.settingsOf(replayed.known.fingerprint)),
    nowMs,
  });
  const facts = {
    zoneId,
    hours: to - from,
    attackers: news.newAttackers.length,
    rules: news.newRules.length,
  };
  if (isWritten) log.info(facts, "late hours judged");
}

function toJudged(
  hours: readonly CopiedHour[],
  { from, to }: LateSpan,
  { zoneId, covered }: ReplayedHours,
  settings: string,
): JudgedHour[] {
  return hours
    .filter(({ hour, isCopied }) => hour >= from && hour < to && isCopied)
    .map(({ hour, events }) => {
      const { isReady } = viewAfter(covered, hour);
      return { zoneId, hour, events, judgedWith: isReady ? settings : TOO_LITTLE_HISTORY };
    });
}
