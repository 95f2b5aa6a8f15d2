import { severities } from "./alert-message.ts";

export type Severity = (typeof severities)[number];

/** True when `a` is graver than `b`. */
export function isGraver(a: Severity, b: Severity): boolean {
  return severities.indexOf(a) > severities.indexOf(b);
}
