/** Hands each new transition to everyone who follows the alerts. */

import { Transitions } from "#alerts/rules/alert-record.ts";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { maskNullable } from "#archive/rules/mask.ts";
import type { FeedRow } from "#db/alerts/feed-transitions.ts";
import { toError } from "#lib/errors.ts";

/** Maximum number of transitions in one read. */
const BATCH = 500;

interface Numbered {
  readonly sequence: number;
}

interface RowHubOptions<Row extends Numbered> {
  /** Returns the number of the newest row; 0 before the first row. */
  readonly readEnd: () => Promise<number>;
  /** Returns the rows after that number, in order. */
  readonly read: (after: number, limit: number) => Promise<readonly Row[]>;
  readonly pollEveryMs: number;
  readonly onError: (error: Error) => void;
}

interface Joined {
  /** Number of the newest row. Later rows reach the listener in order; some earlier rows may reach it as well. */
  readonly position: number;
  readonly leave: () => void;
}

export interface RowHub<Row extends Numbered> {
  /** @throws if the store cannot be read */
  join(listener: (rows: readonly Row[]) => void): Promise<Joined>;
}

/**
 * Follows the numbered rows for all listeners of this process: one small read per period while there is a listener,
 * none otherwise. After a failed read the hub reads again, and no row is skipped.
 */
export function createRowHub<Row extends Numbered>(options: RowHubOptions<Row>): RowHub<Row> {
  const { readEnd, read, pollEveryMs, onError } = options;
  const listeners = new Set<(rows: readonly Row[]) => void>();
  let position = 0;
  /** Settles when the position is known; null without listeners. */
  let following: Promise<void> | null = null;

  async function begin(): Promise<void> {
    try {
      position = await readEnd();
    } catch (thrown) {
      following = null;
      throw thrown;
    }
    schedule();
  }

  function schedule(): void {
    setTimeout(() => void follow(), pollEveryMs).unref();
  }

  async function follow(): Promise<void> {
    try {
      for (let isMore = listeners.size > 0; isMore; ) {
        const rows = await read(position, BATCH);
        position = rows.at(-1)?.sequence ?? position;
        for (const listener of listeners) if (rows.length > 0) listener(rows);
        isMore = rows.length === BATCH;
      }
    } catch (thrown) {
      onError(toError(thrown));
    }
    if (listeners.size > 0) schedule();
    else following = null;
  }

  return {
    async join(listener) {
      listeners.add(listener);
      const leave = () => void listeners.delete(listener);
      try {
        await (following ??= begin());
      } catch (thrown) {
        leave();
        throw thrown;
      }
      return { position, leave };
    },
  };
}

/** One transition as the stream shows it. Its texts are hostile. */
export interface FeedEvent {
  readonly sequence: number;
  readonly alertId: number;
  readonly transition: number;
  /** ISO 8601. Null, like state and severity, if the alert's history cannot be read. */
  readonly at: string | null;
  readonly reason: string;
  readonly state: string | null;
  readonly severity: string | null;
  readonly kind: string;
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  readonly ruleTitle: string | null;
  readonly firedAt: string;
  readonly fingerprint: string;
  readonly headline: string | null;
  readonly by: string | null;
  readonly note: string | null;
  /** The silence that kept the transition from the channels. */
  readonly silencedBy: number | null;
}

/** Returns a transition for the stream. `isMasked` masks the addresses in its texts. */
export function toFeedEvent(row: FeedRow, isMasked: boolean): FeedEvent {
  const { sequence, alertId, transition, kind, zoneId, ruleId, fingerprint, headline } = row;
  const entry = Transitions.safeParse([row.entry]).data?.[0];
  const note = entry?.note ?? null;
  const by = entry?.by ?? null;
  return {
    sequence,
    alertId,
    transition,
    at: entry === undefined ? null : new Date(entry.at).toISOString(),
    reason: entry?.reason ?? "unknown",
    state: entry?.state ?? null,
    severity: entry?.severity ?? null,
    kind,
    zoneId,
    ruleId,
    ruleTitle: ruleTitle(ruleId),
    firedAt: row.firedAt.toISOString(),
    fingerprint,
    headline: isMasked ? maskNullable(headline) : headline,
    by: isMasked ? maskNullable(by) : by,
    note: isMasked ? maskNullable(note) : note,
    silencedBy: entry?.silencedBy ?? null,
  };
}
