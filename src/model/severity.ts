import { SEVERITIES, type Severity } from "./kinds.ts";

/** Returns true when `a` is more severe than `b`. */
export function isGraver(a: Severity, b: Severity): boolean {
  return SEVERITIES.indexOf(a) > SEVERITIES.indexOf(b);
}

/** Returns the most severe one; `info` for an empty list. */
export function gravestOf(all: readonly Severity[]): Severity {
  return all.reduce<Severity>((gravest, next) => (isGraver(next, gravest) ? next : gravest), "info");
}
