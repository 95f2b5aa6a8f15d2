import type { SpikeRow } from "#db/detection/spikes.ts";
import { comparesEvents, endIncidents, followFired } from "#stages/detection/incidents/follow-incidents.ts";
import type { Incident, PastIncident } from "#stages/detection/incidents/incident.ts";
import { toIncident, toPastIncident } from "#stages/detection/incidents/stored-incident.ts";
import type { FiredMinute } from "#stages/detection/sources/judge-sources.ts";
import type { Pass } from "./source-pass.ts";
import type { DueZone } from "./source-tick.ts";
import { readHour, storeIncident } from "./store-incidents.ts";

/**
 * Follows the incidents of a zone over the minutes in which keys fired, up to `through`, exclusive, and stores them. The
 * rows are the truth: a replica that was faster may have judged minutes that are not judged again here. Returns whether one
 * opened, changed or closed.
 */
export async function judgeIncidents(
  { deps: { database }, tick: { isShadow } }: Pass,
  { zoneId, open: rows, former: formerRows, known }: DueZone,
  { fired, through }: { readonly fired: readonly FiredMinute[]; readonly through: number },
): Promise<boolean> {
  const rowOf = new Map<string, SpikeRow>(rows.map((row) => [row.incident, row]));
  const ended: PastIncident[] = [];
  const former = formerRows.flatMap((row) => toPastIncident(row) ?? []);
  let open: readonly Incident[] = rows.flatMap((row) => toIncident(row) ?? []);
  const endBefore = (minute: number) => {
    const done = endIncidents(open, minute);
    open = done.open;
    ended.push(...done.ended);
    former.push(...done.ended);
  };
  for (const one of fired) {
    endBefore(one.minute);
    const compared = comparesEvents(open, one) ? await readHour(database, zoneId, one.minute) : [];
    const hour = compared.filter((event) => !known.isKnown(event));
    open = followFired(open, one, { hour, former });
  }
  endBefore(through);
  const judged = [
    ...ended.map(({ closedAt, ...incident }) => ({ incident, closedAt })),
    ...open.map((incident) => ({ incident, closedAt: null })),
  ];
  let hasChanged = false;
  for (const one of judged) {
    const storing = { ...one, isShadow, row: rowOf.get(one.incident.name), known, through };
    hasChanged = (await storeIncident(database, zoneId, storing)) || hasChanged;
  }
  return hasChanged;
}
