import { ServiceError } from "../errors.ts";
import { hashEventKey, unpackLogIdHashes } from "../ingest/log-id-hash.ts";
import { rewriteRawBlock } from "../ingest/raw-block.ts";
import { eraseRecord } from "./erase-record.ts";
import { matchTombstones, type Tombstone } from "./match-tombstones.ts";
import type { PseudonymKey } from "./pseudonym-key.ts";
import { replaceAddresses } from "./replace-addresses.ts";

/** Pseudonyms and tombstones were made with another key than the one at hand, or with one that is gone. */
export class PseudonymKeyError extends ServiceError {
  override readonly name = "PseudonymKeyError";
  readonly code = "PSEUDONYM_KEY";
  readonly disposition = "retry";
}

interface EventKey {
  readonly occurredAt: number;
  readonly logId: string;
}

/** Where an event's record lies in a block, and how it is emptied there. */
export const recordEraser = {
  find(logIdHashes: Buffer, events: readonly EventKey[]): readonly number[] {
    if (events.length === 0) return [];
    const wanted = new Set(events.map(hashEventKey));
    return unpackLogIdHashes(logIdHashes).flatMap((hash, position) => (wanted.has(hash) ? [position] : []));
  },
  erase: (block: Buffer, positions: readonly number[]) => rewriteRawBlock(block, positions, eraseRecord),
};

/** Keeps erased data out of what ingest stores. */
export function createErasureGuard(openKey: () => Promise<PseudonymKey>) {
  return {
    ...recordEraser,
    async match(tombstones: readonly (Tombstone & { readonly keyId: string })[]) {
      const key = await openKey();
      const foreign = tombstones.find(({ keyId }) => keyId !== key.id);
      if (foreign !== undefined) {
        throw new PseudonymKeyError(
          `an erasure was made with key ${foreign.keyId}, this process has ${key.id}: nothing that it may cover is stored until LONGWATCH_PSEUDONYM_KEY is the same for all`,
        );
      }
      return matchTombstones(key, tombstones);
    },
    async eraseUnreadable(raw: Buffer, covers: (ip: string) => boolean): Promise<Buffer> {
      const isHit = containsAddress(raw, covers);
      return isHit ? eraseUnreadable(await openKey(), raw) : raw;
    },
  };
}

/** Whether bytes that could not be read name such an address. */
export function containsAddress(raw: Buffer, covers: (ip: string) => boolean): boolean {
  let isHit = false;
  replaceAddresses(raw.toString("latin1"), (ip) => {
    isHit ||= covers(ip);
    return null;
  });
  return isHit;
}

/** The same for the same bytes: read again, they are known. */
export function eraseUnreadable(key: PseudonymKey, raw: Buffer): Buffer {
  return Buffer.from(JSON.stringify({ erased: key.hash("content", raw).toString("hex") }));
}
