import { digest } from "#model/fingerprint.ts";
import type { SourceMode } from "#model/kinds.ts";
import type { KnownSource } from "#model/known-source.ts";
import { matchesRule } from "#model/subject.ts";

export interface Sensitivity {
  /** The score from which a count is a spike. */
  readonly z: number;
  /** The least number of events of a window that can be a spike. */
  readonly floor: number;
}

export interface Detection extends Sensitivity {
  readonly sources: SourceMode;
  /** Whether DNS is asked about addresses that claim to be a search engine's crawler. */
  readonly verifyCrawlers: boolean;
  /** The known sources of the configuration file. Those that `longwatch known` adds are in the database. */
  readonly knownSources: readonly KnownSource[];
  /** Only the first matching override applies. It may leave a setting out. */
  readonly overrides: readonly (Partial<Sensitivity> & {
    readonly zone?: readonly number[] | undefined;
    readonly rule?: readonly string[] | undefined;
  })[];
}

/** Returns the sensitivity for one series. */
export function sensitivityOf(detection: Detection, zoneId: number, ruleId: string): Sensitivity {
  const { z, floor, overrides } = detection;
  const found = overrides.find(
    ({ zone, rule }) =>
      (zone === undefined || zone.includes(zoneId)) &&
      (rule === undefined || rule.some((pattern) => matchesRule(pattern, ruleId))),
  );
  return { z: found?.z ?? z, floor: found?.floor ?? floor };
}

/** Raised when the detectors judge the same events in another way than before. */
const VERSION = 1;
/** Stands for the settings of hours that were not compared with anything, because a zone's first day is its history. */
export const TOO_LITTLE_HISTORY = "too little history";

/** Returns a short name of the settings, and of a zone's known sources by their fingerprint. */
export function nameSettings({ z, floor, overrides, sources }: Detection, known: string): string {
  return digest([VERSION, z, floor, sources, known, JSON.stringify(overrides)]).slice(0, 12);
}

/** Returns the lowest of all floors: below it no series can have a spike. */
export function lowestFloor({ floor, overrides }: Detection): number {
  return Math.min(floor, ...overrides.map((override) => override.floor ?? floor));
}
