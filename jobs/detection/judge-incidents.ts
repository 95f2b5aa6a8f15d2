import type { Database } from "#db/client.ts";
import { readHour } from "#db/detection/source-events.ts";
import type { SpikeRow } from "#db/detection/spikes.ts";
import { readVerdicts } from "#db/detection/verdicts.ts";
import { isBenign } from "#model/verdict.ts";
import { isGraver } from "#model/words.ts";
import {
  comparesEvents,
  endIncidents,
  followFired,
  groupInTurns,
} from "#stages/detection/incidents/follow-incidents.ts";
import { type Incident, newestNews, type PastIncident } from "#stages/detection/incidents/incident.ts";
import { toIncident, toPastIncident } from "#stages/detection/incidents/stored-incident.ts";
import type { FollowedIncident } from "#stages/detection/late/find-late-news.ts";
import type { FiredMinute } from "#stages/detection/sources/judge-sources.ts";
import type { Pass } from "./source-pass.ts";
import type { DueZone } from "./source-tick.ts";
import { storeIncident } from "./store-incidents.ts";

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
      return latest !== undefined && isBenign(latest);
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
