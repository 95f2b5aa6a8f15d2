import type { Queryable } from "#db/client.ts";
import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import { firstListedDay } from "#model/horizon.ts";
import { hashEventKey, unpackLogIdHashes } from "#model/log-id-hash.ts";
import { packRawBlocks, type RawBlock } from "#model/raw-block.ts";
import { listDays } from "#stages/ingest/digest-list-page.ts";
import type { PreparedPage } from "#stages/ingest/prepare-page.ts";

/**
 * Packs the rows of a search whose day the list no longer shows, as records: `log` holds the same record as the list
 * (platform API spec 2.4). Leaves out those that a block already holds. Two concurrent runners at worst keep one
 * record twice.
 */
export async function packUnlistedRecords(
  db: Queryable,
  zoneId: number,
  { events, records }: Pick<PreparedPage, "events" | "records">,
  nowMs: number,
): Promise<RawBlock[]> {
  const listedFrom = firstListedDay(nowMs);
  const unlisted = events.flatMap((event, index) => {
    const raw = records[index];
    const { occurredAt } = event;
    return raw === undefined || occurredAt >= listedFrom
      ? []
      : [{ occurredAt, logIdHash: hashEventKey(event), raw }];
  });
  if (unlisted.length === 0) return [];
  const times = unlisted.map(({ occurredAt }) => occurredAt);
  const span = { fromMs: Math.min(...times), toMs: Math.max(...times), days: listDays(unlisted) };
  const kept = new Set((await readLogIdHashes(db, zoneId, span)).flatMap(unpackLogIdHashes));
  return packRawBlocks(unlisted.filter(({ logIdHash }) => !kept.has(logIdHash)));
}
