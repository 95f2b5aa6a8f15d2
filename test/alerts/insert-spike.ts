import { sql } from "drizzle-orm";
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

/**
 * Copies the newest spike, in one statement, until there is one for each of so many rules. The numbers of their rules follow its own;
 * together they open within `spreadMs`.
 */
export async function repeatSpike(db: Queryable, rules: number, spreadMs = 0): Promise<void> {
  await db.execute(sql`
    insert into spikes overriding system value
    select copy.* from spikes s, generate_series(1, ${rules - 1}::integer) n,
      lateral jsonb_populate_record(s, jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('spikes', 'id')),
        'rule_id', (s.rule_id::integer + n)::text,
        'opened_at', s.opened_at + n * ${spreadMs / rules}::float8 * interval '1 millisecond')) copy
    where s.id = (select max(id) from spikes)`);
}
