/** Judges hours that were copied late. */
import { z } from "zod";
import { listKnownSources, toKnownSource } from "#db/detection/exclusions.ts";
import {
  forgetJudged,
  type JudgedHour,
  lockUnjudged,
  noteJudgedHours,
  readCopiedHours,
  readUnjudgedZones,
  wasWatchedBefore,
} from "#db/detection/judged-hours.ts";
import { readAddressesOfRules } from "#db/detection/source-events.ts";
import { collectEvidence, noEvidence } from "#db/detection/spike-evidence.ts";
import {
  insertLateSpikes,
  type LateSpike,
  readAttacks,
  readSearchedThrough,
  readSpikesBetween,
  readStaleSeries,
} from "#db/detection/spikes.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { countSenders, gradeSpike } from "#detection/rules/assess-series.ts";
import { LONGEST_WINDOW, TOO_LITTLE_HISTORY } from "#detection/rules/detection-settings.ts";
import { findLateNews, findLateSpan, judgeableHours, type LateSpan } from "#detection/rules/find-late.ts";
import { endOfIncident } from "#detection/rules/incidents/incident.ts";
import { toMinute, toStoredEpisode } from "#detection/rules/stored-episode.ts";
import { HISTORY_HOURS } from "#detection/rules/thresholds/thresholds.ts";
import { viewAfter } from "#detection/rules/zone-view.ts";
import { toError } from "#lib/errors.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CopiedHour } from "#model/covered-hour.ts";
import { isSentByFew } from "#model/ip-address.ts";
import { createKnownSources } from "#model/known-source.ts";
import { isRuleKind } from "#model/rules.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";
import { describeIncidentRow, followIncidents } from "./judge-incidents.ts";
import { type JudgeLateDeps, type LateHours, raiseLate, releaseLate } from "./raise-late.ts";
import { firstReplayed, type ReplayedHours, replayRules, replaySourceHours } from "./replay-late.ts";

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

/** The spikes whose evidence is collected. Those of a longer outage are listed without. */
const MOST_EVIDENCE = 100;

/** Stores what late hours have shown, the message about it, and that they are judged, at once. Returns false if they were. */
async function storeLate(deps: JudgeLateDeps, late: LateHours): Promise<boolean> {
  const { zoneId, span, judged, nowMs } = late;
  const ofRules = await toRuleSpikes(deps, late);
  const spikes = [...(await toIncidentSpikes(deps, late)), ...ofRules];
  const { fewAddresses } = deps.routing();
  const small = new Set(
    ofRules.filter((spike) => isSentByFew(spike, fewAddresses)).map(({ ruleId }) => ruleId),
  );
  const stored = await inTransaction(deps.database, async ({ tx }) => {
    if (!(await lockUnjudged(tx, zoneId, { fromHour: span.from, toHour: span.to }))) return null;
    await insertLateSpikes(tx, spikes);
    await noteJudgedHours(tx, judged, true);
    // Hours after these were judged without their events, which have come since, or not been replayed yet.
    if (!span.isLast || span.isRecent) await forgetJudged(tx, zoneId, span.to, nowMs);
    return raiseLate(tx, deps, late, small);
  });
  if (stored === true) await deps.afterAlerts();
  return stored !== null;
}

async function toIncidentSpikes({ database }: JudgeLateDeps, late: LateHours): Promise<LateSpike[]> {
  const { zoneId, span, news, isShadow, known, nowMs } = late;
  const spikes: LateSpike[] = [];
  for (const { incident, closedAt, row } of news.incidents) {
    const through = Math.min(closedAt ?? endOfIncident(incident), span.to * 60);
    // The common traits are those of the hour before its latest attack.
    const countedTo = Math.min(incident.lastFiredAt, through);
    const times = { judgedThrough: through, countedTo, closedAt: through, nowMs };
    const described = { incident, known, times, firstSeen: null };
    const stored = await describeIncidentRow(database, zoneId, described);
    spikes.push({ ...stored, id: row?.id ?? null, zoneId, isShadow, isLate: true });
  }
  return spikes;
}

async function toRuleSpikes({ database, sensitivity }: JudgeLateDeps, late: LateHours): Promise<LateSpike[]> {
  const { zoneId, span, news, nowMs } = late;
  const through = span.to * 60;
  const { db } = database;
  const scopes = news.rules.map(({ ruleId, episode: { openedAt, windowMinutes, lastActiveAt } }) => {
    const to = Math.min(lastActiveAt, openedAt + LONGEST_WINDOW);
    return { zoneId, ruleId, from: openedAt - windowMinutes, to };
  });
  const addresses = await readAddressesOfRules(db, scopes);
  const spikes: LateSpike[] = [];
  for (const [i, { ruleId, episode, closedAt, row }] of news.rules.entries()) {
    const sinceMs = (episode.openedAt - episode.windowMinutes) * MINUTE_MS;
    const toMs = episode.lastActiveAt * MINUTE_MS;
    const scope = { zoneId, ruleId, fromMs: Math.max(sinceMs, toMs - HOUR_MS), toMs, sinceMs, sparkline: [] };
    const senders = countSenders(addresses[i] ?? []);
    const found = senders.addresses || null;
    const { z } = sensitivity(zoneId, ruleId);
    const { severity, gradedBy } = gradeSpike({
      score: episode.score,
      z,
      addresses: found,
      before: undefined,
    });
    const facts = { memberOf: null, addresses: found, mainSenders: senders.main || null, gradedBy };
    spikes.push({
      ...toStoredEpisode(
        { ...facts, episode: { ...episode, severity }, closedAt: closedAt ?? through },
        { lastTested: through - 1, row: undefined, nowMs },
      ),
      id: row?.id ?? null,
      zoneId,
      ruleId,
      isLate: true,
      evidence: i < MOST_EVIDENCE ? await collectEvidence(db, scope) : noEvidence(scope),
    });
  }
  return spikes;
}
