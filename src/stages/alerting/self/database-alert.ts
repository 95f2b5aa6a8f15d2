import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import { buildSelfMessage } from "../message/self-message.ts";

/** The database is down, does not answer or has no disk space left. */
export interface DatabaseTrouble {
  /** Epoch ms. */
  readonly sinceMs: number;
  /** The problem and its consequence, in one line. */
  readonly headline: string;
}

/**
 * Returns the message about a database that cannot store the alert itself: that the database failed, or with
 * `resolvedAtMs` that it works again. The alert has no row, so it has no number.
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
