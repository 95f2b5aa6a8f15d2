import { createHash } from "node:crypto";

/** The subject of an alert. Two alerts of one subject are never open together. */
export interface AlertSubject {
  readonly kind: string;
  /** Null if the alert is about Longwatch itself. */
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  /** Distinguishes the incidents of a zone. */
  readonly incident?: string | undefined;
}

/**
 * Returns 32 hex digits. `new-rule` counts as `spike`, because a new rule's burst may become a spike within one
 * episode. The rule id distinguishes incidents from rules. JSON separates the members, so that no hostile rule id can look
 * like another member.
 */
export function fingerprintOf({ kind, zoneId, ruleId, incident = "" }: AlertSubject): string {
  const what = kind === "new-rule" || kind === "sources" ? "spike" : kind;
  return digest([what, zoneId, ruleId, ...(incident === "" ? [] : [incident])]);
}

/** Returns a short stable name for some values. */
export function digest(values: readonly (string | number | null)[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("hex").slice(0, 32);
}
