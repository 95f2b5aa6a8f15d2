import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "#lib/clock.ts";
import { isFullDisk, saysFullDisk } from "#lib/full-disk.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  type ServerEnd,
  startEmbeddedPostgres,
} from "./postgres.ts";
import { EmbeddedPostgresError } from "./postgres-error.ts";

/** An outage: the server ended without being stopped. */
export interface PostgresOutage extends ServerEnd {
  /** When it ended; epoch ms. */
  readonly sinceMs: number;
  /** Restarts that have failed since. */
  readonly failedRestarts: number;
  /** Whether the server's last lines report a full disk. */
  readonly isDiskFull: boolean;
}

export interface SuperviseOptions extends EmbeddedPostgresOptions {
  readonly clock: Clock;
  /** Called when the server has ended, and after every restart that failed. */
  readonly onDown: (outage: PostgresOutage) => void;
  /** Called when the server answers again. */
  readonly onUp: (outage: PostgresOutage) => void;
  /** Before the first restart; twice as long before each further one, up to 30 s. Default 500 ms. */
  readonly pauseMs?: number;
}

const PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** A server that ends sooner than this after a restart counts as another failed restart: the pause grows on. */
const STABLE_MS = 60_000;
/** Crash recovery reads up to two gigabytes of log. Ended early, it would begin anew. */
const RECOVERY_TIMEOUT_MS = 15 * 60_000;

/**
 * Starts the embedded Postgres and starts it again, on the same port, whenever it ends by itself.
 * @throws like `startEmbeddedPostgres` when the first start fails.
 */
export async function superviseEmbeddedPostgres(
  options: SuperviseOptions,
): Promise<Pick<EmbeddedPostgres, "url" | "stop">> {
  const { clock, onDown, onUp, pauseMs = PAUSE_MS } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const first = await startEmbeddedPostgres(options);
  const again = {
    ...options,
    signal,
    port: Number(new URL(first.url).port),
    startTimeoutMs: RECOVERY_TIMEOUT_MS,
  };
  let server = first;

  /** Restarts the server. Returns null if it was stopped meanwhile. */
  async function restart(end: ServerEnd, failedBefore: number) {
    const isDiskFull = end.lines.some(saysFullDisk);
    let outage: PostgresOutage = { ...end, sinceMs: clock(), failedRestarts: failedBefore, isDiskFull };
    onDown(outage);
    for (;;) {
      const pause = Math.min(pauseMs * 2 ** outage.failedRestarts, MAX_PAUSE_MS);
      await delay(pause, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return null;
      try {
        const restarted = await startEmbeddedPostgres(again);
        onUp(outage);
        return { restarted, failedRestarts: outage.failedRestarts };
      } catch (thrown) {
        if (signal.aborted) return null;
        outage = { ...outage, ...explain(thrown, outage), failedRestarts: outage.failedRestarts + 1 };
        onDown(outage);
      }
    }
  }

  async function watch(): Promise<void> {
    let failedRestarts = 0;
    for (;;) {
      const startedAt = performance.now();
      const end = await server.ended;
      if (signal.aborted) return;
      if (performance.now() - startedAt > STABLE_MS) failedRestarts = 0;
      const next = await restart(end, failedRestarts);
      if (next === null) return;
      server = next.restarted;
      failedRestarts = next.failedRestarts + 1;
    }
  }

  const watching = watch();
  return {
    url: first.url,
    async stop() {
      stopping.abort(new Error("the service is stopping"));
      await server.stop();
      await watching;
      // A restart may have come up at the last moment.
      await server.stop();
    },
  };
}

/** Returns the reason and lines of a failed restart, or the known ones if it has no new lines. */
function explain(thrown: unknown, known: ServerEnd): ServerEnd & { readonly isDiskFull: boolean } {
  const failed = [thrown, thrown instanceof Error ? thrown.cause : null].find(
    (one) => one instanceof EmbeddedPostgresError,
  );
  const lines = failed === undefined || failed.lines.length === 0 ? known.lines : failed.lines;
  const message = thrown instanceof Error && failed !== thrown ? thrown.message : "it does not start";
  return { reason: failed === undefined ? message : known.reason, lines, isDiskFull: isFullDisk(thrown) };
}
