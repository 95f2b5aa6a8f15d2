import type { LookUnlisted } from "#model/covered-hour.ts";
import { joinIdDigests, NO_IDS } from "./id-digest.ts";

/** Above this number of features their combinations are not tried. */
const MAX_FEATURES = 8;

interface IdSet {
  readonly count: number;
  readonly ids: string;
}

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
