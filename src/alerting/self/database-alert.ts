import type { AlertMessage } from "../../model/alert-message.ts";
import { digest } from "../../model/fingerprint.ts";
import { buildSelfMessage } from "../message/self-message.ts";

/** The database is down, does not answer or has no disk space left. */
export interface DatabaseTrouble {
  /** Epoch ms. */
  readonly sinceMs: number;
  /** What is wrong and what it means, one line. */
  readonly headline: string;
}

/**
 * Returns the message about a database that cannot take the alert itself: that it failed, or with `resolvedAtMs` that it
 * works again. No row is behind it, so its alert has no number.
 */
export function buildDatabaseMessage(trouble: DatabaseTrouble, resolvedAtMs: number | null): AlertMessage {
  const isOver = resolvedAtMs !== null;
  return buildSelfMessage({
    alertId: 0,
    fingerprint: digest(["self", "database"]),
    reason: isOver ? "resolved" : "first",
    severity: "critical",
    zoneId: null,
    headline: isOver ? "The database works again" : trouble.headline,
    alert: {
      state: isOver ? "resolved" : "firing",
      transition: isOver ? 2 : 1,
      firedAtMs: trouble.sinceMs,
      resolvedAtMs,
      spikeId: null,
      transitions: [],
    },
  });
}
