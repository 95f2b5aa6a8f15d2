import type { EvidenceDimension, SourceKind } from "#model/kinds.ts";
import type { KnownSources } from "#model/known-source.ts";
import type { GrownValue, StoredSources } from "#model/stored-sources.ts";
import type { MinuteEvent } from "../sources/count-hour.ts";
import { toSourceKey, toSourcePath } from "../sources/source-event.ts";
import { LONGEST_WINDOW } from "../thresholds/windows.ts";
import { createAttackerTest } from "./attacker.ts";

const TOP = 5;
const MAX_GROWN = 3;
/** A value that grew by fewer events than this is not named. */
const MIN_GROWTH = 5;
/** Growth is the difference between this many minutes and the same minutes of yesterday. */
export const COMPARED_MINUTES = 15;

export interface EvidenceEvent extends MinuteEvent {
  readonly country: string | null;
}

type Top = { value: string; count: number; share: number }[];

export interface IncidentEvidence
  extends Pick<StoredSources, "grown" | "rules" | "events" | "isMasked" | "known"> {
  readonly top: Readonly<Record<Exclude<EvidenceDimension, "action">, Top>>;
  readonly firstMinute: number | null;
  readonly lastMinute: number | null;
  /** Events of the attackers in each of the sixty minutes before the end. */
  readonly sparkline: readonly number[];
}

/**
 * Collects what the events of attackers have in common, and what grew most in the zone. `hour` holds the
 * events of the hour that ends with `endMinute`, `yesterday` those of its last quarter a day earlier. Events of known
 * sources are only counted.
 */
export function collectIncidentEvidence(
  {
    attackers,
    windowMinutes,
  }: { attackers: readonly { kind: SourceKind; key: string }[]; windowMinutes: number },
  {
    hour: all,
    yesterday,
    endMinute,
    isKnown,
  }: {
    hour: readonly EvidenceEvent[];
    yesterday: readonly EvidenceEvent[];
    endMinute: number;
    isKnown: KnownSources["isKnown"];
  },
): IncidentEvidence {
  const hour = all.filter((event) => !isKnown(event));
  const ofSource = hour.filter(createAttackerTest(attackers));
  const inWindow = ofSource.filter(({ minute }) => minute >= endMinute - windowMinutes);
  const sparkline = Array.from({ length: LONGEST_WINDOW }, () => 0);
  for (const { minute } of ofSource) {
    const at = minute - (endMinute - LONGEST_WINDOW);
    if (at >= 0 && at < LONGEST_WINDOW) sparkline[at] = (sparkline[at] ?? 0) + 1;
  }
  const topOf = (valueOf: (event: EvidenceEvent) => string): Top =>
    largest(countBy(inWindow, valueOf)).map(([value, count]) => ({
      value,
      count,
      share: count / inWindow.length,
    }));
  return {
    top: {
      ip: topOf(({ ip }) => ip ?? ""),
      asn: topOf(({ asn }) => asn ?? ""),
      country: topOf(({ country }) => country ?? ""),
      path: topOf(({ url }) => (url === null ? "" : toSourcePath(url))),
      ua: topOf(({ ua }) => ua ?? ""),
      ja4: topOf(({ ja4 }) => ja4 ?? ""),
    },
    rules: largest(countBy(inWindow, ({ ruleId }) => ruleId ?? "")).map(([value, count]) => ({
      value,
      count,
    })),
    events: inWindow.length,
    firstMinute: inWindow[0]?.minute ?? null,
    lastMinute: inWindow.at(-1)?.minute ?? null,
    sparkline,
    isMasked: inWindow.some(({ ip }) => isMaskedAddress(ip)),
    grown: findGrown(
      hour.filter(({ minute }) => minute >= endMinute - COMPARED_MINUTES),
      yesterday.filter((event) => !isKnown(event)),
    ),
    known: all.length - hour.length,
  };
}

const DIMENSIONS: Readonly<Record<GrownValue["dimension"], (event: EvidenceEvent) => string>> = {
  asn: ({ asn }) => toSourceKey(asn),
  country: ({ country }) => toSourceKey(country),
  path: ({ url }) => (url === null ? "" : toSourcePath(url)),
  rule: ({ ruleId }) => toSourceKey(ruleId),
  ja4: ({ ja4 }) => toSourceKey(ja4),
};

/** Returns the value of each dimension whose events grew most, the largest growth first. */
function findGrown(now: readonly EvidenceEvent[], before: readonly EvidenceEvent[]): GrownValue[] {
  return (Object.keys(DIMENSIONS) as GrownValue["dimension"][])
    .flatMap((dimension) => {
      const earlier = countBy(before, DIMENSIONS[dimension]);
      let most: GrownValue | null = null;
      for (const [value, count] of countBy(now, DIMENSIONS[dimension])) {
        const grown = { dimension, value, now: count, before: earlier.get(value) ?? 0 };
        if (most === null || growthOf(grown) > growthOf(most)) most = grown;
      }
      return most === null || growthOf(most) < MIN_GROWTH ? [] : [most];
    })
    .sort((a, b) => growthOf(b) - growthOf(a))
    .slice(0, MAX_GROWN);
}

function growthOf({ now, before }: GrownValue): number {
  return now - before;
}

function countBy(
  events: readonly EvidenceEvent[],
  valueOf: (event: EvidenceEvent) => string,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const event of events) {
    const value = valueOf(event);
    if (value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

function largest(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, TOP);
}

/** Returns whether an address lacks a part, so that several senders look like one. */
function isMaskedAddress(ip: string | null): boolean {
  return ip !== null && /[*x]/i.test(ip) && !ip.startsWith("anon-");
}
