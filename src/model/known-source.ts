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
export const MAX_IN_ZONE = 500;
export const MAX_IN_ALL = 2_000;

/**
 * Returns the rule that a list of known sources breaks by its length, with the length; null if there is none. Without a
 * zone, every zone is checked. Sources that have ended do not count, and a pattern counts once for the same zones.
 */
export function findTooManyKnown(
  list: readonly KnownSource[],
  { nowMs, zone }: { readonly nowMs: number; readonly zone?: number | undefined },
): { readonly rule: string; readonly count: number } | null {
  const everywhere = new Set<string>();
  const named = new Map<number, Set<string>>(zone === undefined ? [] : [[zone, new Set()]]);
  const all = new Set<string>();
  for (const { kind, pattern, zoneIds } of list.filter((one) => isValid(one, nowMs))) {
    const source = `${kind} ${pattern}`;
    all.add(`${source} ${zoneIds?.join() ?? ""}`);
    if (zoneIds === null) everywhere.add(source);
    for (const one of zoneIds ?? [])
      if (zone === undefined || one === zone) named.set(one, (named.get(one) ?? new Set()).add(source));
  }
  const inAll = { rule: `must be at most ${MAX_IN_ALL} known sources in all`, count: all.size };
  const inZones = [...named].map(([one, own]) => ({
    rule: `must be at most ${MAX_IN_ZONE} known sources in zone ${one}, those of every zone among them`,
    count: new Set([...everywhere, ...own]).size,
  }));
  const ofEvery = {
    rule: `must be at most ${MAX_IN_ZONE} known sources that are for every zone`,
    count: everywhere.size,
  };
  if (inAll.count > MAX_IN_ALL) return inAll;
  return [ofEvery, ...inZones].find(({ count }) => count > MAX_IN_ZONE) ?? null;
}

function isValid({ untilMs }: KnownSource, nowMs: number): boolean {
  return untilMs === null || untilMs > nowMs;
}

/** Returns the known sources of zones. They are made once for each zone, and once for the zones that name none. */
export function createKnownSources(
  list: readonly KnownSource[],
  nowMs: number,
): (zoneId: number) => KnownSources {
  const valid = list.filter((one) => isValid(one, nowMs));
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
