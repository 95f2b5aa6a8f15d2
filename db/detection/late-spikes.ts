import { and, eq } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { spikes } from "../schema/spikes.ts";
import type { NewSpike } from "./spikes.ts";

/** A spike that was found late. `id` is that of the one that it replaces, which an earlier replay has found; null if none. */
export type LateSpike = Omit<NewSpike, "id"> & { readonly id: number | null; readonly isLate: true };

/** Stores spikes that were found late. A replaced one keeps its mark. */
export async function insertLateSpikes(tx: Queryable, found: readonly LateSpike[]): Promise<void> {
  for (const { id, ...spike } of found) {
    if (id === null) await tx.insert(spikes).values(spike);
    else
      await tx
        .update(spikes)
        .set(spike)
        .where(and(eq(spikes.id, id), eq(spikes.isLate, true)));
  }
}
