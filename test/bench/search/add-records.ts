import type { Database } from "#db/client.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { toListEntry } from "#emulator/traffic/render-event.ts";
import { createTraffic } from "#emulator/traffic/traffic.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey } from "#model/waf-event.ts";

const PER_PACK = 20_000;

/** Gives every event of a zone's day a record: an entry as the platform's list shows it, of another event of that size. */
export async function addRecords(database: Database, zoneId: number, day: string): Promise<void> {
  const { rows } = await database.pool.query<{ at: number; logId: string }>(
    `select (extract(epoch from occurred_at) * 1000)::float8 as at, log_id as "logId" from waf_events
     where zone_id = $1 and occurred_at >= $2::timestamptz and occurred_at < $2::timestamptz + interval '1 day'
     order by occurred_at, log_id`,
    [zoneId, `${day}T00:00:00Z`],
  );
  const entries = drawEntries(zoneId, Date.parse(day));
  for (let from = 0; from < rows.length; from += PER_PACK) {
    const events = rows.slice(from, from + PER_PACK).map(({ at: occurredAt, logId }) => ({
      occurredAt,
      logIdHash: hashEventKey({ occurredAt, logId }),
      raw: Buffer.from(entries.next().value ?? ""),
    }));
    await insertRawBlocks(database.db, zoneId, await packRawBlocks(events));
  }
}

function* drawEntries(zoneId: number, from: number): Generator<string> {
  const traffic = createTraffic({ seed: "bench", lateness: { share: 0, maxMs: MINUTE_MS } });
  const rates = [{ sinceMs: 0, eventsPerSecond: 10 }];
  const plan = { id: zoneId, firstEventMs: from, createdAtMs: from, rates };
  for (let minute = from / MINUTE_MS; ; minute++)
    for (const draft of traffic.minute(plan, minute)) yield JSON.stringify(toListEntry(draft));
}
