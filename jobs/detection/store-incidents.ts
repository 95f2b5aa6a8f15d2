import type { Database } from "#db/client.ts";
import { readAllSourceEvents, readFirstSeen, readHour } from "#db/detection/source-events.ts";
import { openSpike, type SpikeRow, updateSpike } from "#db/detection/spikes.ts";
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import type { KnownSources } from "#model/known-source.ts";
import { strongestOf } from "#stages/detection/incidents/follow-incidents.ts";
import { activeAttackers, type Incident } from "#stages/detection/incidents/incident.ts";
import { COMPARED_MINUTES, collectIncidentEvidence } from "#stages/detection/incidents/incident-evidence.ts";
import { toIncident, toIncidentRow } from "#stages/detection/incidents/stored-incident.ts";
import { toSourceAddress } from "#stages/detection/sources/source-event.ts";
import { isNews } from "#stages/detection/stored-episode.ts";
import { LONGEST_WINDOW } from "#stages/detection/thresholds/windows.ts";

/** An incident after its zone was judged. */
interface Judged {
  readonly isShadow: boolean;
  /** The row of the incident; undefined if it is new. */
  readonly row: SpikeRow | undefined;
  readonly incident: Incident;
  readonly closedAt: number | null;
  readonly known: KnownSources;
  /** The end of the judged minutes, and of those that are counted. */
  readonly through: number;
  readonly countedTo: number;
  readonly nowMs: number;
}

/**
 * Stores an incident of a zone as a spike. Returns whether it opened, changed or closed. A further quiet minute is no
 * change.
 */
export async function storeIncident(
  database: Database,
  zoneId: number,
  { isShadow, row, incident, closedAt, known, through, countedTo, nowMs }: Judged,
): Promise<boolean> {
  const { db } = database;
  const times = { judgedThrough: closedAt ?? through, countedTo, closedAt, nowMs };
  const before = row === undefined ? null : toIncident(row);
  if (row?.sources != null && !isStronger(incident, before, countedTo)) {
    const { openedAt: _, ...next } = toIncidentRow(incident, row.sources, times);
    return (await updateSpike(db, row.id, next)) && isNews(row, next);
  }
  const firstSeen = await findFirstSeen(database, zoneId, { row, before, incident, countedTo });
  const stored = await describeIncidentRow(database, zoneId, { incident, known, times, firstSeen });
  const { openedAt: _, ...changed } = stored;
  return row === undefined
    ? (await openSpike(db, { zoneId, isShadow, ...stored })) !== null
    : updateSpike(db, row.id, changed);
}

/** Returns the row of an incident, with what its events before `times.countedTo` have in common. */
export async function describeIncidentRow(
  database: Database,
  zoneId: number,
  {
    incident,
    known,
    times,
    firstSeen,
  }: Pick<Judged, "incident" | "known"> & {
    readonly times: Parameters<typeof toIncidentRow>[2];
    readonly firstSeen: number | null;
  },
) {
  const { countedTo } = times;
  const strongest = strongestOf(incident, countedTo - 1);
  const active = activeAttackers(incident, countedTo - 1);
  const windowMinutes = strongest?.windowMinutes ?? LONGEST_WINDOW;
  const found = await collectIncidentEvidence(
    { attackers: active.length > 0 ? active : incident.attackers, windowMinutes },
    {
      hour: await readHour(database.db, zoneId, countedTo - 1),
      yesterday: await readAllSourceEvents(database.db, {
        zoneId,
        from: countedTo - COMPARED_MINUTES - MINUTES_PER_DAY,
        to: countedTo - MINUTES_PER_DAY,
      }),
      endMinute: countedTo,
      isKnown: known.isKnown,
    },
  );
  const isoOf = (minute: number) => new Date(minute * MINUTE_MS).toISOString();
  const evidence = {
    from: isoOf(countedTo - windowMinutes),
    to: isoOf(countedTo),
    total: found.events,
    sampled: found.events,
    firstEventAt: found.firstMinute === null ? null : isoOf(found.firstMinute),
    lastEventAt: found.lastMinute === null ? null : isoOf(found.lastMinute),
    top: { ...found.top, action: [] },
    sparkline: found.sparkline,
  };
  return { ...toIncidentRow(incident, { ...found, firstSeen }, times), evidence };
}

/** Returns whether the evidence is out of date: another attacker is the strongest, one is new, or the strongest grew. */
function isStronger(incident: Incident, before: Incident | null, countedTo: number): boolean {
  const [now, then] = [incident, before].map((one) => one && strongestOf(one, countedTo - 1));
  if (!now || !then || before === null) return true;
  const isOther = attackerIdOf(now) !== attackerIdOf(then);
  return isOther || now.score > then.score || incident.attackers.length > before.attackers.length;
}

/** The day before is enough: a source that comes at the same hour of every day was seen 24 hours ago. */
async function findFirstSeen(
  { db }: Database,
  zoneId: number,
  {
    row,
    before,
    incident,
    countedTo,
  }: Pick<Judged, "row" | "incident" | "countedTo"> & { before: Incident | null },
): Promise<number | null> {
  const strongest = strongestOf(incident, countedTo - 1);
  if (strongest === undefined) return null;
  const known = before === null ? undefined : strongestOf(before, countedTo - 1);
  if (
    known !== undefined &&
    attackerIdOf(known) === attackerIdOf(strongest) &&
    row?.sources?.firstSeen != null
  )
    return row.sources.firstSeen;
  const { kind, key } = strongest;
  const span = { from: countedTo - MINUTES_PER_DAY, to: countedTo };
  return readFirstSeen(db, { zoneId, kind, key, ...span }, toSourceAddress);
}
