/** Starts the embedded Postgres again when it ends, and records each outage. */

import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { isFullDisk, saysFullDisk } from "#lib/disk.ts";
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

interface SuperviseOptions extends EmbeddedPostgresOptions {
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

const BYTES = 4_096;

const Outage = z.object({
  sinceMs: z.number(),
  /** Null while the server is down. */
  untilMs: z.number().nullable(),
  failedRestarts: z.number(),
  reason: z.string(),
  lines: z.array(z.string()).readonly(),
  isDiskFull: z.boolean(),
});
/** The last time that the embedded Postgres ended by itself, as the other commands on this machine read it. */
export type RecordedOutage = z.infer<typeof Outage>;

function fileIn(dataDir: string): string {
  return path.join(dataDir, "postgres-outage.json");
}

/**
 * Creates the empty file in which outages are recorded. Returns a function that writes an outage into it. The file has
 * its full size from the start and is overwritten in place, so that a full disk does not prevent a write.
 */
export function openOutageFile(dataDir: string): (outage: PostgresOutage, untilMs: number | null) => void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), " ".repeat(BYTES), { mode: 0o600 });
  return (outage, untilMs) => write(dataDir, { ...outage, untilMs });
}

function write(dataDir: string, outage: RecordedOutage): void {
  // If not all lines fit, the oldest lines are left out.
  const reason = outage.reason.slice(0, 500);
  for (let first = 0; first <= outage.lines.length; first++) {
    const text = JSON.stringify({ ...outage, reason, lines: outage.lines.slice(first) });
    const bytes = Buffer.alloc(BYTES, " ");
    if (Buffer.byteLength(text) > BYTES) continue;
    bytes.write(text);
    overwrite(fileIn(dataDir), bytes);
    return;
  }
}

function overwrite(file: string, bytes: Buffer): void {
  const descriptor = openSync(file, "r+");
  try {
    writeSync(descriptor, bytes, 0, bytes.length, 0);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the last outage since the service was started, or null. */
export function readOutageFile(dataDir: string): RecordedOutage | null {
  try {
    return Outage.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch {
    return null;
  }
}
