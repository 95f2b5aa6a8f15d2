import { SOURCE_KINDS, type SourceKind, WINDOWS } from "#model/kinds.ts";
import { type Finding, judgeMinute } from "../judge-minute.ts";
import type { Thresholds } from "../thresholds/thresholds.ts";
import type { UsualOf } from "./distinct-members.ts";
import type { SourceCounter, SourceMinute } from "./source-counter.ts";
import { floorOf, SOURCE_Z } from "./source-thresholds.ts";

/** The most keys of one minute that are looked at one by one. A flood of addresses has thousands. */
const MAX_FIRES = 50;

/** A key at or over the line of its series, with its strongest window. `count` is what exceeds the usual. */
export interface Fire extends Finding {
  readonly kind: SourceKind;
  /** Hostile text. */
  readonly key: string;
  /** Different members of the key, and how many of them are usual for it. `count` is their difference. */
  readonly members: number;
  readonly usualMembers: number;
}

/** A minute in which a key reached its line. */
export interface FiredMinute {
  /** Since the epoch. */
  readonly minute: number;
  /** The furthest above its line first. */
  readonly fires: readonly Fire[];
  /** How many further keys reached their lines. */
  readonly more: number;
}

/** Returns the keys of a minute that was just closed and that reach their lines; null without any. */
export function judgeSources(
  minute: number,
  counts: SourceMinute,
  {
    counter,
    usualOf,
    thresholdsOf,
  }: {
    counter: SourceCounter;
    usualOf: UsualOf;
    thresholdsOf: (kind: SourceKind) => Thresholds;
  },
): FiredMinute | null {
  const fires = SOURCE_KINDS.flatMap((kind): Fire[] => {
    // Thresholds take longer than counting, and most minutes of most zones need none.
    if (counts[kind].every((count) => count < floorOf(kind))) return [];
    const thresholds = thresholdsOf(kind);
    if (judgeMinute(counts[kind], thresholds) === null) return [];
    return counter.reaching(kind, minute, usualOf, thresholds.threshold).flatMap((one): Fire[] => {
      const finding = judgeMinute(one.excess, thresholds);
      if (finding === null) return [];
      const members = one.counts[WINDOWS.indexOf(finding.windowMinutes)] ?? 0;
      return [{ ...finding, kind, key: one.key, members, usualMembers: members - finding.count }];
    });
  });
  if (fires.length === 0) return null;
  fires.sort((one, other) => overZ(other) - overZ(one) || (one.key < other.key ? -1 : 1));
  return { minute, fires: fires.slice(0, MAX_FIRES), more: Math.max(fires.length - MAX_FIRES, 0) };
}

/** Returns how many deviations a key lies above the line of its series. */
export function overZ({ kind, score }: Pick<Fire, "kind" | "score">): number {
  return score - SOURCE_Z[kind];
}
