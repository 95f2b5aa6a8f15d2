import { useStatus, type Zone } from "../api/status.ts";
import { useUrlState } from "./url-state.ts";

export interface ZoneChoice {
  /** The text of the address: `101`, `team=shop`, or empty for all zones. */
  readonly chosen: string;
  /** The zones that the page shows; empty while they are not known. */
  readonly zones: readonly Zone[];
  readonly all: readonly Zone[];
  /** The only zone of the choice; null if there are several. */
  readonly only: Zone | null;
  /** The zone that a list is asked for: its lists know one zone or all. Null asks for all. */
  readonly asked: number | null;
  /** Returns whether what belongs to a zone is shown. What belongs to no zone is shown beside all zones only. */
  readonly isShown: (zoneId: number | null) => boolean;
  /** Set if the address names a zone that is not there. */
  readonly unknown: string | null;
  readonly choose: (text: string) => void;
}

/** The zones that the reader chose in the header: all, one, or those with a label. */
export function useZones(): ZoneChoice {
  const { params, change } = useUrlState();
  const { data } = useStatus();
  const all = data?.zones ?? [];
  const chosen = params.get("zone") ?? "";
  const found = all.filter((zone) => isChosen(zone, chosen));
  const isUnknown = chosen !== "" && data !== undefined && found.length === 0;
  const zones = isUnknown ? all : found;
  const isEvery = isUnknown || chosen === "";
  const only = zones.length === 1 ? (zones[0] ?? null) : null;
  return {
    chosen: isEvery ? "" : chosen,
    zones,
    all,
    only,
    asked: isEvery ? null : (only?.id ?? null),
    isShown: (zoneId) => isEvery || zones.some(({ id }) => id === zoneId),
    unknown: isUnknown ? chosen : null,
    choose: (text) => change({ zone: text === "" ? null : text }),
  };
}

function isChosen({ id, labels }: Zone, chosen: string): boolean {
  if (chosen === "") return true;
  const [label, value] = chosen.split("=", 2);
  return value === undefined ? String(id) === chosen : labels[label ?? ""] === value;
}

/** `shop` where the configuration file names the zone, else `zone 101`. */
export function zoneTitle(zone: Pick<Zone, "id" | "name">): string {
  return zone.name ?? `zone ${zone.id}`;
}

/** The title of a zone by its number. */
export function useZoneTitle(): (zoneId: number | null) => string {
  const { all } = useZones();
  return (zoneId) => {
    if (zoneId === null) return "Longwatch";
    return zoneTitle(all.find(({ id }) => id === zoneId) ?? { id: zoneId, name: null });
  };
}
