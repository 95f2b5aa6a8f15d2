import { digest } from "./fingerprint.ts";
import { KNOWN_KINDS, type KnownKind } from "./kinds.ts";
import { toTraitTest } from "./source-traits.ts";

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

/** Maximum number of remembered values of a field. */
const MAX_REMEMBERED = 20_000;

/** Recognises the events of known sources in one zone. */
export interface KnownSources {
  readonly isKnown: (event: SourceFields) => boolean;
  /** Equal for lists that recognise the same events; empty for an empty list. */
  readonly fingerprint: string;
}

export function createKnownSources(
  list: readonly KnownSource[],
  { zoneId, nowMs }: { zoneId: number; nowMs: number },
): KnownSources {
  const valid = list.filter(
    ({ zoneIds, untilMs }) =>
      (zoneIds === null || zoneIds.includes(zoneId)) && (untilMs === null || untilMs > nowMs),
  );
  const tests = KNOWN_KINDS.flatMap((kind) => {
    const patterns = valid.filter((one) => one.kind === kind).map(({ pattern }) => pattern);
    return patterns.length === 0 ? [] : [{ kind, isMatch: remember(toTraitTest(kind, patterns)) }];
  });
  return {
    isKnown: (event) =>
      tests.some(({ kind, isMatch }) => {
        const value = event[kind];
        return value !== null && value !== "" && isMatch(value);
      }),
    fingerprint:
      valid.length === 0
        ? ""
        : digest([...new Set(valid.map(({ kind, pattern }) => `${kind} ${pattern}`))].sort()),
  };
}

/** Remembers the results, because parsing an address costs more than a lookup. */
function remember(isMatch: (value: string) => boolean): (value: string) => boolean {
  const known = new Map<string, boolean>();
  return (value) => {
    const before = known.get(value);
    if (before !== undefined) return before;
    if (known.size >= MAX_REMEMBERED) known.clear();
    const found = isMatch(value);
    known.set(value, found);
    return found;
  };
}
