import { rollUpBatch } from "#db/detection/roll-up.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { writeHorizon } from "#db/proof/horizons.ts";
import { createEmulator, type Emulator, type EmulatorOptions } from "#emulator/emulator.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { atEnd } from "#test/support/at-end.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { makeKey, type SearchOptions, startArchive } from "../faces/http/start-archive.ts";
import { openIngest, ZONE } from "../ingest/ingest-support.ts";
import { NOW } from "./now.ts";

export { NOW } from "./now.ts";

export interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
  readonly headers: Headers;
}

export type Ask = (path: string, init?: RequestInit & { key?: string | null }) => Promise<Answer>;

/** A client that has only the platform's API: a base URL and a key. */
export function createClient(baseUrl: string, accessKey: string): Ask {
  return async (path, { key = accessKey, ...init } = {}) => {
    const headers = { ...(key === null ? {} : { AccessKey: key }), ...(init.headers as object) };
    const response = await fetch(baseUrl + path, { ...init, headers });
    const type = response.headers.get("content-type");
    return { status: response.status, type, text: await response.text(), headers: response.headers };
  };
}

/** The emulator, everything it shows copied by the real jobs, and the archive's HTTP over it. */
export async function openArchive(
  options: EmulatorOptions & { readonly parts?: Partial<SearchOptions> } = {},
) {
  const { parts, historyHours = 30, ...given } = options;
  const emulator = await createEmulator({
    eventsPerSecond: 0.1,
    historyHours,
    clock: () => NOW,
    ...given,
  });
  atEnd(() => emulator.close());
  const ingest = await openIngest(emulator);
  const { database } = ingest;
  // Every empty hour of the 72 that the platform keeps is one more search.
  const keptMs = (historyHours + 1) * HOUR_MS;
  await writeHorizon(database.db, ZONE, { keptMs, since: NOW - DAY_MS, beforeMs: null }, NOW - DAY_MS);
  await ingest.poll();
  await ingest.walk();
  await rollUp(database);
  const served = await serve(database, emulator, parts);
  return { emulator, ingest, database, ...served };
}

export async function serve(
  database: MigratedDatabase,
  emulator: Emulator,
  parts: Partial<SearchOptions> = {},
) {
  const clock = () => emulator.now();
  const defaults = { clock, zoneIds: [ZONE], refuseCostly: () => undefined };
  const http = await startArchive(database.url, {}, {}, { ...defaults, ...parts });
  const { key } = await makeKey(database, "operator");
  const ask = createClient(http.url, key);
  return { http, key, ask, platform: createClient(emulator.url, emulator.accessKey) };
}

async function rollUp(database: MigratedDatabase): Promise<void> {
  for (;;) {
    const batch = await inTransaction(database, ({ tx }) => rollUpBatch(tx, { zoneId: ZONE, limit: 5_000 }));
    if (batch.counted === 0) return;
  }
}

export function post(body: unknown, headers: Record<string, string> = {}): RequestInit {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { method: "POST", body: text, headers: { "content-type": "application/json", ...headers } };
}
