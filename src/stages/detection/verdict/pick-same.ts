import { DAY_MS } from "#lib/units.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import type { Mark } from "#model/kinds.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import { templateOf } from "./path-template.ts";

/** Former marks are said for so long. */
export const REMEMBERED_MS = 90 * DAY_MS;

/** A spike with its mark, and what it is compared with other spikes by. */
interface MarkedSpike {
  readonly mark: Mark | null;
  readonly markedAt: Date | null;
  readonly alertId: number | null;
  readonly path: string | null;
  readonly sources: StoredSources | null;
}

/** Returns the marks of the same subject: an attacker of the incident, or the most frequent path. One that is not known is any. */
export function pickSame([own, ...others]: readonly MarkedSpike[]) {
  const keysOf = ({ sources }: MarkedSpike) => sources?.findings.map(attackerIdOf) ?? [];
  const isSame = (other: MarkedSpike, one: MarkedSpike) => {
    if (one.sources !== null) return keysOf(other).some((key) => keysOf(one).includes(key));
    return other.path === null || one.path === null || templateOf(other.path) === templateOf(one.path);
  };
  return others.flatMap((other) => {
    const { mark, markedAt, alertId } = other;
    if (own === undefined || mark === null || markedAt === null || !isSame(other, own)) return [];
    return [{ mark, at: markedAt.toISOString(), alertId }];
  });
}
