import type { Queryable } from "#db/client.ts";
import { type Attention, type Looked, listAttention } from "../list-attention.ts";
import { listFirstCopies, lookAround } from "../look-around.ts";
import { readUnpolled } from "../read-unpolled.ts";
import type { ZoneCoverage } from "../read-zones.ts";
import { assessService } from "../service-life.ts";
import type { ServiceView } from "../service-view.ts";

/** The facts about the whole service where there are none, or where the caller may not see them. */
export const NOTHING_AROUND: Omit<Looked, "zones" | "unpolled"> = {
  channels: null,
  service: assessService([]),
  keyProblem: null,
  held: [],
  givenUp: 0,
  selfAlerts: 0,
  newlyWatched: new Map(),
};

/** Returns what needs attention. A caller of some zones sees nothing of the service as a whole. */
export async function readAttention(
  db: Queryable,
  now: number,
  {
    zones,
    zoneIds,
    isWhole,
    service: { pollEveryMs, configuredChannels },
  }: {
    /** The zones, with their coverage of the last 72 hours. */
    readonly zones: readonly ZoneCoverage[];
    /** Null is every zone. */
    readonly zoneIds: readonly number[] | null;
    /** True if the caller may see things that belong to no single zone. */
    readonly isWhole: boolean;
    readonly service: Pick<ServiceView, "pollEveryMs" | "configuredChannels">;
  },
): Promise<Attention[]> {
  const [around, unpolled] = await Promise.all([
    isWhole
      ? lookAround(db, now)
      : listFirstCopies(db, now).then((newlyWatched) => ({ ...NOTHING_AROUND, newlyWatched })),
    readUnpolled(db, now, { zoneIds, pollEveryMs }),
  ]);
  const attention = listAttention({ ...around, zones, unpolled }, configuredChannels());
  return isWhole ? attention : attention.filter(({ kind }) => kind !== "not-running");
}
