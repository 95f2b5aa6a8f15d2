import { forgetJudged, lockUnjudged, noteJudgedHours } from "#db/detection/judged-hours.ts";
import { readAddressesOfRules } from "#db/detection/source-events.ts";
import { collectEvidence, noEvidence } from "#db/detection/spike-evidence.ts";
import { insertLateSpikes, type LateSpike } from "#db/detection/spikes.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { isSentByFew } from "#model/ip-address.ts";
import { countSenders } from "#stages/detection/count-senders.ts";
import { gradeSpike } from "#stages/detection/grade-spike.ts";
import { endOfIncident } from "#stages/detection/incidents/incident.ts";
import { toStoredEpisode } from "#stages/detection/stored-episode.ts";
import { LONGEST_WINDOW } from "#stages/detection/thresholds/windows.ts";
import { type JudgeLateDeps, type LateHours, raiseLate } from "./raise-late.ts";
import { describeIncidentRow } from "./store-incidents.ts";

/** The spikes whose evidence is collected. Those of a longer outage are listed without. */
const MOST_EVIDENCE = 100;

/** Stores what late hours have shown, the message about it, and that they are judged, at once. Returns false if they were. */
export async function storeLate(deps: JudgeLateDeps, late: LateHours): Promise<boolean> {
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
