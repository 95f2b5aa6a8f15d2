import { afterAll, beforeAll } from "vitest";
import { beatReplica } from "#db/postgres/leases.ts";
import { createAlertWorld } from "#test/alerts/alert-world.ts";
import { createMigratedDatabase, type MigratedDatabase } from "#test/db/migrated-database.ts";
import { call, makeKey, startArchive } from "../start-archive.ts";

const REPLICA = { id: "one", host: "one", pid: 1, version: "0", roles: [] };

/** A database for the tests of a file, and what they ask it over HTTP. Zones 101 and 102 are known. */
export function openApiWorld() {
  let database: MigratedDatabase | undefined;
  const open = () => {
    if (database === undefined) throw new Error("the database is not open yet");
    return database;
  };
  beforeAll(async () => {
    database = await createMigratedDatabase();
    await beatReplica(database.db, { ...REPLICA, zoneIds: [101, 102] });
  });
  afterAll(async () => {
    await database?.drop();
  });
  return {
    database: open,
    alerts: () => createAlertWorld(open()),
    start: (
      api: Parameters<typeof startArchive>[2] = {},
      options: Parameters<typeof startArchive>[1] = {},
      parts: Parameters<typeof startArchive>[3] = {},
    ) => startArchive(open().url, options, api, parts),
    async key(...given: [role: Parameters<typeof makeKey>[1], more?: Parameters<typeof makeKey>[2]]) {
      const { key } = await makeKey(open(), ...given);
      return key;
    },
  };
}

/** The answer's JSON, which must have come with this status. */
export async function ask<T = Record<string, unknown>>(
  url: string,
  path: string,
  key?: string,
  { status = 200, ...init }: RequestInit & { status?: number } = {},
): Promise<T> {
  const response = await call(url, path, key, init);
  const text = await response.text();
  if (response.status !== status) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** Every item of a list, page by page, and how many pages there were. */
export async function askAll<Item>(
  url: string,
  path: string,
  key: string,
  limit: number,
  between: (page: number) => Promise<void> = async () => undefined,
): Promise<Item[]> {
  const items: Item[] = [];
  let after: string | null = null;
  for (let page = 0; page < 1_000; page++) {
    const query = new URLSearchParams({ limit: String(limit), ...(after === null ? {} : { after }) });
    const answer: { items: Item[]; next: string | null } = await ask(
      url,
      `${path}${path.includes("?") ? "&" : "?"}${query.toString()}`,
      key,
    );
    items.push(...answer.items);
    after = answer.next;
    if (after === null) return items;
    await between(page);
  }
  throw new Error(`${path} does not end`);
}
