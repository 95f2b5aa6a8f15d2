import type { Account } from "#config/file/accounts-entry.ts";
import type { Database } from "#db/client.ts";
import { recordAnswer, recordRefusal } from "#db/proof/platform-health.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import { DEFAULT_ACCOUNT, findOwner } from "#model/zones.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";

/** Receives how the platform answered for a zone. */
export interface EdgeObserver {
  answered(zoneId: number): Promise<void>;
  refused(zoneId: number, code: string): Promise<void>;
}

/** Returns the same client with its event requests observed. Only failures of the access key count as refused. */
export function watchEdge(edge: EdgeClient, observer: EdgeObserver): EdgeClient {
  async function watched<T>(zoneId: number, call: Promise<T>): Promise<T> {
    try {
      const result = await call;
      await observer.answered(zoneId);
      return result;
    } catch (thrown) {
      if (isRefusal(thrown)) await observer.refused(zoneId, thrown.code);
      throw thrown;
    }
  }
  return {
    ...edge,
    searchEventLogs: (params, signal) => watched(params.shieldZoneId, edge.searchEventLogs(params, signal)),
    readEventLogs: (params, signal) => watched(params.shieldZoneId, edge.readEventLogs(params, signal)),
  };
}

function isRefusal(thrown: unknown): thrown is EdgeError {
  return thrown instanceof EdgeError && ["EDGE_UNAUTHORIZED", "EDGE_FORBIDDEN"].includes(thrown.code);
}

/** Interval at which an unchanged state is written, because answers arrive many times per second. */
const WRITE_EVERY_MS = 30_000;

/** Stores the outcome of the platform's answers, so that every replica sees it. A failed write does not stop ingest. */
export function recordPlatformHealth(parts: {
  readonly database: Pick<Database, "db">;
  readonly clock: Clock;
  readonly log: Log;
}): EdgeObserver {
  const { database, clock, log } = parts;
  const written = new Map<number, { readonly outcome: string; readonly atMs: number }>();

  async function note(
    zoneId: number,
    outcome: string,
    write: (atMs: number) => Promise<void>,
  ): Promise<void> {
    const atMs = clock();
    const last = written.get(zoneId);
    if (last?.outcome === outcome && Math.abs(atMs - last.atMs) < WRITE_EVERY_MS) return;
    written.set(zoneId, { outcome, atMs });
    try {
      await write(atMs);
    } catch (thrown) {
      written.delete(zoneId);
      log.debug({ err: thrown, zoneId }, "platform health not recorded");
    }
  }

  return {
    answered: (zoneId) => note(zoneId, "answered", (atMs) => recordAnswer(database.db, zoneId, atMs)),
    refused: (zoneId, code) =>
      note(zoneId, code, (atMs) => recordRefusal(database.db, zoneId, { atMs, code })),
  };
}

type KeyOwner = Pick<Account, "name" | "zoneIds" | "rereadKey">;

/** Returns a function that reads the files of the access keys again, or that of one zone's account, and logs a change. */
export function createKeyReader(
  accounts: readonly [KeyOwner, ...KeyOwner[]],
  log: Pick<Log, "info" | "error">,
) {
  return (zoneId?: number): void => {
    const read = zoneId === undefined ? accounts : [findOwner(accounts, zoneId)];
    for (const { name: account, rereadKey } of read) {
      const named = account === DEFAULT_ACCOUNT ? { variable: "EDGE_API_KEY_FILE" } : { account };
      const result = rereadKey();
      if (result === "changed") log.info(named, "access key read again");
      else if (result !== "same")
        log.error({ ...named, mistake: result.mistake }, "previous access key kept");
    }
  };
}

/** Returns the same observer, which reads the key again after a refusal: the file may hold a new key by now. */
export function rereadWhenRefused(observer: EdgeObserver, reread: (zoneId: number) => void): EdgeObserver {
  return {
    answered: (zoneId) => observer.answered(zoneId),
    refused(zoneId, code) {
      reread(zoneId);
      return observer.refused(zoneId, code);
    },
  };
}
