import type { Queryable } from "#db/client.ts";
import { type SpikeEvidence, spikes } from "#db/schema/spikes.ts";
import { EVERYDAY, EVIDENCE } from "./support.ts";

/** Stores a spike as detect-spikes would; returns its id. */
export async function insertSpike(
  db: Queryable,
  over: Partial<typeof spikes.$inferInsert> & { openedAt: Date },
): Promise<number> {
  const { openedAt } = over;
  const evidence: SpikeEvidence = {
    ...EVIDENCE,
    from: openedAt.toISOString(),
    to: openedAt.toISOString(),
    total: 50,
    sampled: 50,
    firstEventAt: null,
    lastEventAt: null,
  };
  const inserted = await db
    .insert(spikes)
    .values({
      zoneId: 101,
      ruleId: "942100",
      severity: "warning",
      kind: "spike",
      lastActiveAt: openedAt,
      judgedThrough: openedAt,
      baseline: 2,
      threshold: 10,
      score: 4.2,
      peak: 60,
      windowCount: over.closedAt == null ? 50 : EVERYDAY,
      windowMinutes: 3,
      evidence,
      ...over,
    })
    .returning({ id: spikes.id });
  const id = inserted[0]?.id;
  if (id === undefined) throw new Error("no spike inserted");
  return id;
}
