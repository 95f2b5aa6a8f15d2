import type { Queryable } from "../../db/client.ts";
import { readLogIdHashes } from "../../db/ingest/raw-blocks.ts";
import { listDays } from "../../src/ingest/digest-list-page.ts";
import type { PreparedPage } from "../../src/ingest/prepare-page.ts";
import { firstListedDay } from "../../src/model/horizon.ts";
import { hashEventKey, unpackLogIdHashes } from "../../src/model/log-id-hash.ts";
import { packRawBlocks, type RawBlock } from "../../src/model/raw-block.ts";

/**
 * The rows of a search that no list will show any more, because their day has left it, as records: what the list would
 * have given of them is in `log` (platform API spec 2.4). Those that a block holds already are left out; two runners at
 * once at worst keep one twice.
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
