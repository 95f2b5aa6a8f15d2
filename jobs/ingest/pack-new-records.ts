import type { Queryable } from "#db/client.ts";
import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import { packRawBlocks, type RawBlock } from "#model/raw-block.ts";
import { daysOf, hashEventKey, spanOf, unpackLogIdHashes } from "#model/waf-event.ts";
import type { EventRecord } from "#stages/ingest/read-page.ts";

/**
 * Packs the records that no block holds, neither a stored one nor one of `before`, which may not be stored yet. A crash
 * before the blocks are stored, or a second runner, at worst keeps one record twice.
 */
export async function packNewRecords(
  db: Queryable,
  zoneId: number,
  records: readonly EventRecord[],
  before: readonly RawBlock[] = [],
): Promise<RawBlock[]> {
  const span = spanOf(records);
  if (span === null) return [];
  const { firstAt: fromMs, lastAt: toMs } = span;
  const packed = await readLogIdHashes(db, zoneId, { fromMs, toMs, days: daysOf(records) });
  const held = [...packed, ...before.map(({ logIdHashes }) => logIdHashes)];
  const kept = new Set(held.flatMap(unpackLogIdHashes));
  const entries = records.map((record) => ({ ...record, logIdHash: hashEventKey(record) }));
  return packRawBlocks(entries.filter(({ logIdHash }) => !kept.has(logIdHash)));
}
