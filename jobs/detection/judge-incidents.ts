/** Follows and stores incidents. */
import type { Database } from "#db/client.ts";
import { readAllSourceEvents, readFirstSeen, readHour } from "#db/detection/source-events.ts";
import { openSpike, type SpikeRow, updateSpike } from "#db/detection/spikes.ts";
import { readVerdicts } from "#db/detection/verdicts.ts";
import { LONGEST_WINDOW } from "#detection/rules/detection-settings.ts";
import type { FollowedIncident } from "#detection/rules/find-late.ts";
import {
  comparesEvents,
  endIncidents,
  followFired,
  groupInTurns,
  strongestOf,
} from "#detection/rules/incidents/follow-incidents.ts";
import {
  activeAttackers,
  type Incident,
  newestNews,
  type PastIncident,
} from "#detection/rules/incidents/incident.ts";
import { COMPARED_MINUTES, collectIncidentEvidence } from "#detection/rules/incidents/incident-evidence.ts";
import { toIncident, toIncidentRow, toPastIncident } from "#detection/rules/incidents/stored-incident.ts";
import type { FiredMinute } from "#detection/rules/sources/judge-sources.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { isNews } from "#detection/rules/stored-episode.ts";
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import type { KnownSources } from "#model/known-source.ts";
import { leansBenign } from "#model/verdict.ts";
import { isGraver } from "#model/words.ts";
import type { Pass } from "./source-hours.ts";
import type { DueZone } from "./source-tick.ts";

const NOBODY: ReadonlySet<string> = new Set();

interface FiredMinutes {
  readonly fired: readonly FiredMinute[];
  /** The end of the minutes that are over. */
  readonly through: number;
  /** The events so far of the minute after `through`; null if they are not known. */
  readonly running?: FiredMinute | null;
}

/**
 * Follows the incidents of a zone over the minutes in which keys fired, up to `through`, exclusive, and stores them. Of the
 * running minute only news are stored: an incident, an attacker with a name of its own, or a graver severity. The
 * rows are the truth: a replica that was faster may have judged minutes that are not judged again here. Returns whether one
 * opened, changed or closed.
 */
export async function judgeIncidents(
  { deps: { database }, tick: { isShadow, span } }: Pass,
  { zoneId, open: rows, former, known: sources }: DueZone,
  { fired, through, running = null }: FiredMinutes,
): Promise<boolean> {
  const rowOf = new Map<string, SpikeRow>(rows.map((row) => [row.incident, row]));
  const before = {
    open: rows.flatMap((row) => toIncident(row) ?? []),
    former: former.flatMap((row) => toPastIncident(row) ?? []),
  };
  const benign = async () => {
    const ids = rows.map(({ id }) => id);
    const said = ids.length === 0 ? null : await readVerdicts(database.db, ids);
    const isRowBenign = ({ id }: SpikeRow) => {
      const latest = said?.get(id)?.at(-1);
      return latest !== undefined && leansBenign(latest);
    };
    return new Set(rows.filter(isRowBenign).map(({ incident }) => incident));
  };
  const zone = { zoneId, known: sources };
  const judged = await followIncidents(database, zone, { fired, through, running }, { ...before, benign });
  const countedTo = running === null ? through : running.minute + 1;
  const { nowMs } = span;
  let hasChanged = false;
  for (const one of judged) {
    const row = rowOf.get(one.incident.name);
    const storing = { ...one, isShadow, row, known: sources, through, countedTo, nowMs };
    hasChanged = (await storeIncident(database, zoneId, storing)) || hasChanged;
  }
  return hasChanged;
}

/** Returns the incidents of a zone that ended in the minutes before `through`, and those that are open then. */
export async function followIncidents(
  database: Database,
  { zoneId, known }: Pick<DueZone, "zoneId" | "known">,
  { fired, through, running = null }: FiredMinutes,
  before: {
    readonly open: readonly Incident[];
    readonly former: readonly PastIncident[];
    /** Returns the names of open incidents of which the latest verdict says that nobody attacks. */
    readonly benign?: () => Promise<ReadonlySet<string>>;
  },
): Promise<FollowedIncident[]> {
  const ended: PastIncident[] = [];
  const former = [...before.former];
  let { open } = before;
  const endBefore = (minute: number) => {
    const done = endIncidents(open, minute);
    open = done.open;
    ended.push(...done.ended);
    former.push(...done.ended);
  };
  const follow = async (one: FiredMinute) => {
    if (!comparesEvents(open, one)) return followFired(open, one, { eventsOf: () => [], former });
    const eventsOf = await groupInTurns(await readHour(database.db, zoneId, one.minute), known.isKnown);
    const benign = (await before.benign?.()) ?? NOBODY;
    return followFired(open, one, { eventsOf, former, benign });
  };
  for (const one of fired) {
    endBefore(one.minute);
    open = await follow(one);
  }
  endBefore(through);
  return [
    ...ended.map(({ closedAt, ...incident }) => ({ incident, closedAt })),
    ...(running === null ? open : findNews(open, await follow(running))).map((incident) => ({
      incident,
      closedAt: null,
    })),
  ];
}

/** Returns the incidents that people have to learn of before the minute is over. */
function findNews(before: readonly Incident[], now: readonly Incident[]): Incident[] {
  return now.filter((incident) => {
    const known = before.find(({ name }) => name === incident.name);
    if (known === undefined) return true;
    return newestNews(incident) > newestNews(known) || isGraver(incident.severity, known.severity);
  });
}

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
async function storeIncident(
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
