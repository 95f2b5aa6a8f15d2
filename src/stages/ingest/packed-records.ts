import { hashEventKey, packLogIdHashes, unpackLogIdHashes } from "#model/log-id-hash.ts";
import type { RawEntry } from "#model/raw-block.ts";

/** Records of a page in few buffers, so that they can be passed between threads. */
export interface PackedRecords {
  /** The memory of the records. */
  readonly bytes: Buffer;
  /** First byte and end of each record. */
  readonly bounds: Uint32Array<ArrayBuffer>;
  /** Epoch ms. */
  readonly times: Float64Array<ArrayBuffer>;
  readonly logIdHashes: Buffer;
}

interface Named {
  readonly occurredAt: number;
  readonly logId: string;
}

/** Packs records. Those that are views into `body` stay there; others are copied. */
export function packRecords(
  body: Buffer,
  records: readonly Buffer[],
  events: readonly Named[],
): PackedRecords {
  const isView = records.every(({ buffer }) => buffer === body.buffer);
  const bounds = new Uint32Array(2 * records.length);
  let copied = 0;
  for (const [index, record] of records.entries()) {
    const start = isView ? record.byteOffset - body.byteOffset : copied;
    copied += record.length;
    bounds[2 * index] = start;
    bounds[2 * index + 1] = start + record.length;
  }
  return {
    bytes: isView ? body : Buffer.concat(records),
    bounds,
    times: Float64Array.from(events, ({ occurredAt }) => occurredAt),
    logIdHashes: packLogIdHashes(events.map(hashEventKey)),
  };
}

/** Returns every record whose id is not among `kept`. */
export function unpackRecords(packed: PackedRecords, kept: ReadonlySet<string>): RawEntry[] {
  const { bytes, bounds, times } = packed;
  return unpackLogIdHashes(packed.logIdHashes).flatMap((logIdHash, index) => {
    if (kept.has(logIdHash)) return [];
    const raw = bytes.subarray(bounds[2 * index], bounds[2 * index + 1]);
    return [{ occurredAt: times[index] ?? 0, logIdHash, raw }];
  });
}
