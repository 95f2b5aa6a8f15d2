import { matchesRule } from "../model/subject.ts";

export interface Sensitivity {
  /** How unusual a count must be. */
  readonly z: number;
  /** Events that a window must have at least. */
  readonly floor: number;
}

export interface Detection extends Sensitivity {
  /** The first that matches decides what it names. */
  readonly overrides: readonly (Partial<Sensitivity> & {
    readonly zone?: readonly number[] | undefined;
    readonly rule?: readonly string[] | undefined;
  })[];
}

/** How one series is judged. */
export function sensitivityOf(detection: Detection, zoneId: number, ruleId: string): Sensitivity {
  const { z, floor, overrides } = detection;
  const found = overrides.find(
    ({ zone, rule }) =>
      (zone === undefined || zone.includes(zoneId)) &&
      (rule === undefined || rule.some((pattern) => matchesRule(pattern, ruleId))),
  );
  return { z: found?.z ?? z, floor: found?.floor ?? floor };
}

/** Below this no series can have a spike. */
export function lowestFloor({ floor, overrides }: Detection): number {
  return Math.min(floor, ...overrides.map((override) => override.floor ?? floor));
}
