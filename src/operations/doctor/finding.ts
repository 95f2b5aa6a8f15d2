/**
 * ok: nothing to do. note: worth knowing. warning: works now, and may not later. problem: something does not work, or
 * events may be lost.
 */
export type FindingLevel = "ok" | "note" | "warning" | "problem";

export interface Finding {
  /** The part that was examined: `platform`, `postgres`, `disk`. */
  readonly check: string;
  readonly level: FindingLevel;
  readonly text: string;
  /** Next step for a person; null if there is none. */
  readonly next: string | null;
}

export function ok(check: string, text: string): Finding {
  return { check, level: "ok", text, next: null };
}

export function note(check: string, text: string, next: string | null = null): Finding {
  return { check, level: "note", text, next };
}

export function warning(check: string, text: string, next: string): Finding {
  return { check, level: "warning", text, next };
}

export function problem(check: string, text: string, next: string): Finding {
  return { check, level: "problem", text, next };
}
