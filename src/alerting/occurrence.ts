import type { Severity } from "../model/severity.ts";

/** What fires, as far as an alert's next word depends on it; epoch ms. */
export interface Occurrence {
  readonly id: number;
  readonly severity: Severity;
  readonly openedAtMs: number;
  readonly closedAtMs: number | null;
  /** Open, and yet nothing happens just now. */
  readonly isCalm?: boolean;
}
