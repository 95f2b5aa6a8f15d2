/** Digests of identifiers, so that two sets can be compared without their members. */
import { hash } from "node:crypto";
import type { LookUnlisted } from "#model/covered-hour.ts";

/** Digest of an empty set of log ids. */
export const NO_IDS = "0".repeat(16);

/**
 * Returns the first eight bytes of the SHA-256 of a log id, as lower-case hex. `readHourContents` computes the same
 * in SQL.
 */
function hashLogId(logId: string): string {
  return hash("sha256", logId, "hex").slice(0, 16);
}

/**
 * Joins digests of disjoint sets of log ids by exclusive or, so neither order nor grouping matters. An id that is
 * joined twice vanishes, so the caller keeps sets disjoint.
 */
export function joinIdDigests(a: string, b: string): string {
  return (BigInt(`0x${a}`) ^ BigInt(`0x${b}`)).toString(16).padStart(16, "0");
}

/** Returns the digest of a set of log ids. */
export function digestIds(logIds: Iterable<string>): string {
  let [high, low] = [0, 0];
  for (const logId of logIds) {
    const hashed = hashLogId(logId);
    high ^= Number.parseInt(hashed.slice(0, 8), 16);
    low ^= Number.parseInt(hashed.slice(8), 16);
  }
  return toHex(high) + toHex(low);
}

function toHex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}

/** A log id that a route shows in one hour and whose event is stored in another; epoch ms of their starts. */
interface MovedId {
  readonly logId: string;
  readonly shownIn: number;
  readonly storedIn: number;
}

interface IdSet {
  readonly count: number;
  readonly ids: string;
}

/** Returns the hours that change if each id is counted in the hour in which its event is stored. */
export function moveIds(shown: ReadonlyMap<number, IdSet>, moved: readonly MovedId[]): Map<number, IdSet> {
  const changed = new Map<number, IdSet>();
  const add = (hour: number, logId: string, events: number) => {
    const { count, ids } = changed.get(hour) ?? shown.get(hour) ?? { count: 0, ids: NO_IDS };
    // An exclusive or also takes an id out of a digest.
    changed.set(hour, { count: count + events, ids: joinIdDigests(ids, hashLogId(logId)) });
  };
  for (const { logId, shownIn, storedIn } of moved) {
    add(shownIn, logId, -1);
    add(storedIn, logId, 1);
  }
  return changed;
}

/** Above this number of features their combinations are not tried. */
const MAX_FEATURES = 8;

/**
 * Returns the features that the list shows no event of, if it shows exactly the stored events of all others; else null.
 * The platform does not document which features its date-paged list shows.
 */
export function findUnlisted(
  shown: IdSet,
  features: readonly (IdSet & { readonly feature: string })[],
): LookUnlisted | null {
  if (features.length > MAX_FEATURES) return null;
  for (let subset = 1; subset < 2 ** features.length - 1; subset++) {
    const left = features.filter((_, index) => (subset & (1 << index)) !== 0);
    const listed = join(features.filter((feature) => !left.includes(feature)));
    if (listed.count !== shown.count || listed.ids !== shown.ids) continue;
    const { count, ids } = join(left);
    return { features: left.map(({ feature }) => feature), count, digest: ids };
  }
  return null;
}

function join(sets: readonly IdSet[]): IdSet {
  return sets.reduce(
    (sum, { count, ids }) => ({ count: sum.count + count, ids: joinIdDigests(sum.ids, ids) }),
    { count: 0, ids: NO_IDS },
  );
}
