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

/** Returns the lowest of all floors: below it no series can have a spike. */
export function lowestFloor({ floor, overrides }: Detection): number {
  return Math.min(floor, ...overrides.map((override) => override.floor ?? floor));
}
