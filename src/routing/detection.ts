import { matchesRule } from "./match-subject.ts";

interface Sensitivity {
  /** How unusual a count must be. */
  readonly z: number;
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
  const { z, overrides } = detection;
  const found = overrides.find(
    ({ zone, rule }) =>
      (zone === undefined || zone.includes(zoneId)) &&
      (rule === undefined || rule.some((pattern) => matchesRule(pattern, ruleId))),
  );
  return { z: found?.z ?? z };
}
