import { createHash } from "node:crypto";

/** What an alert is about; two alerts of one subject are never open together. */
export interface AlertSubject {
  readonly kind: string;
  /** Null where the alert is about Longwatch itself. */
  readonly zoneId: number | null;
  readonly ruleId: string | null;
}

/**
 * 32 hex digits. A new rule's burst may grow into a spike within one episode, so both kinds are one subject. JSON
 * keeps hostile rule ids apart: no text in one member can look like another.
 */
export function fingerprintOf({ kind, zoneId, ruleId }: AlertSubject): string {
  return digest([kind === "new-rule" ? "spike" : kind, zoneId, ruleId]);
}

/** A short stable name of some values. */
export function digest(values: readonly (string | number | null)[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("hex").slice(0, 32);
}
