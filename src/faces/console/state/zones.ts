/** The zones of the service and its status. */

import { ask, type Output, useOperation } from "../api/ask.ts";
import { toProblem } from "../api/client.ts";
import { useLive } from "./now.tsx";
import { useUrlState } from "./url-state.ts";

interface ZoneChoice {
  /** The text of the address: `101`, `team=shop`, or empty for all zones. */
  readonly chosen: string;
  /** The zones that the page shows; empty while they are not known. */
  readonly zones: readonly Zone[];
  readonly all: readonly Zone[];
  /** The only zone of the choice; null if there are several. */
  readonly only: Zone | null;
  /** The zones that a list is asked for, with commas. Null asks for all. */
  readonly asked: string | null;
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
    asked: isEvery ? null : zones.map(({ id }) => id).join(","),
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

export type Zone = Output<"status.show">["zones"][number];

/** The status is read within milliseconds. Without a limit, a request over a lost network would wait for minutes. */
const TIMEOUT_MS = 8_000;
const DOWN_RETRY_MS = 3_000;

/** The current status. The header and several pages share the answer. */
export function useStatus() {
  const { isLive } = useLive();
  return useOperation(
    "status.show",
    {},
    {
      queryFn: ({ signal }) =>
        ask("status.show", {}, { signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) }),
      refetchInterval: ({ state }) => (state.status === "error" ? DOWN_RETRY_MS : isLive && 15_000),
    },
  );
}

/** Returns whether the service does not answer, so that everything shown is as old as its last answer. */
export function useIsDown(): boolean {
  const { error } = useStatus();
  return error !== null && toProblem(error).isPassing;
}

/** Returns a function with the service's time, epoch ms: the clock of a viewer's machine may be wrong. */
export function useServerTime(): () => number {
  const { data, dataUpdatedAt } = useStatus();
  return () => (data === undefined ? Date.now() : Date.parse(data.now) + Date.now() - dataUpdatedAt);
}
