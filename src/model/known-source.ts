import { digest } from "./fingerprint.ts";
import { KNOWN_KINDS, type KnownKind } from "./kinds.ts";
import { toTraitTest } from "./subject.ts";

/** A source that a person knows and expects, such as the owner's own scanner. */
export interface KnownSource {
  readonly kind: KnownKind;
  /** An address or a network, an ASN, a JA4, or a user agent that may end in `*`. */
  readonly pattern: string;
  /** Null applies to every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly reason: string;
  /** Epoch milliseconds; null if there is no end. */
  readonly untilMs: number | null;
}

/** The fields of an event by which its source is recognised. Hostile text. */
type SourceFields = Readonly<Record<KnownKind, string | null>>;

/** Recognises the events of known sources in one zone. */
export interface KnownSources {
  readonly isKnown: (event: SourceFields) => boolean;
  /** Equal for lists that recognise the same events; empty for an empty list. */
  readonly fingerprint: string;
}

/** At most this many patterns hold in one zone, and at most so many in all. */
const MAX_IN_ZONE = 500;
const MAX_IN_ALL = 2_000;

/**
 * Returns the rule that a list of known sources breaks by its length, with the length; null if there is none. Without a
 * zone, the zone with the most is looked at.
 */
export function findTooManyKnown(
  list: readonly Pick<KnownSource, "zoneIds">[],
  zone?: number,
): { readonly rule: string; readonly count: number } | null {
  if (list.length > MAX_IN_ALL)
    return { rule: `must be at most ${MAX_IN_ALL} known sources in all`, count: list.length };
  const everywhere = list.filter(({ zoneIds }) => zoneIds === null).length;
  const named = Map.groupBy(
    list.flatMap(({ zoneIds }) => [...new Set(zoneIds)]),
    (one) => one,
  );
  const zones = zone === undefined ? [...named.keys()] : [zone];
  for (const one of [null, ...zones]) {
    const count = everywhere + (one === null ? 0 : (named.get(one)?.length ?? 0));
    const where = one === null ? "that are for every zone" : `in zone ${one}`;
    if (count > MAX_IN_ZONE) return { rule: `must be at most ${MAX_IN_ZONE} known sources ${where}`, count };
  }
  return null;
}

/** Returns the known sources of zones. They are made once for each zone, and once for the zones that name none. */
export function createKnownSources(
  list: readonly KnownSource[],
  nowMs: number,
): (zoneId: number) => KnownSources {
  const valid = list.filter(({ untilMs }) => untilMs === null || untilMs > nowMs);
  const everywhere = valid.filter(({ zoneIds }) => zoneIds === null);
  const named = valid.filter(({ zoneIds }) => zoneIds !== null);
  const forOthers = recognise(everywhere);
  const made = new Map<number, KnownSources>();
  return (zoneId) => {
    const before = made.get(zoneId);
    if (before !== undefined) return before;
    const own = named.filter(({ zoneIds }) => zoneIds?.includes(zoneId) === true);
    const known = own.length === 0 ? forOthers : recognise([...everywhere, ...own]);
    made.set(zoneId, known);
    return known;
  };
}

function recognise(list: readonly KnownSource[]): KnownSources {
  // A watch keeps the known sources that it began with, so most of those of later minutes recognise nothing.
  let tests: readonly { readonly kind: KnownKind; readonly isMatch: (value: string) => boolean }[] | null =
    null;
  const makeTests = () =>
    KNOWN_KINDS.flatMap((kind) => {
      const patterns = list.filter((one) => one.kind === kind).map(({ pattern }) => pattern);
      return patterns.length === 0 ? [] : [{ kind, isMatch: toTraitTest(kind, patterns) }];
    });
  return {
    isKnown: (event) =>
      (tests ??= makeTests()).some(({ kind, isMatch }) => {
        const value = event[kind];
        return value !== null && value !== "" && isMatch(value);
      }),
    fingerprint:
      list.length === 0
        ? ""
        : digest([...new Set(list.map(({ kind, pattern }) => `${kind} ${pattern}`))].sort()),
  };
}
