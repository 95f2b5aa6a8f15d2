import type { Command } from "commander";
import { test } from "vitest";
import type { Config } from "#config/config.ts";
import type { StoreIo } from "#faces/cli/store/store-command.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { type Ran, runStoreCommand, type Terminal } from "./run-store-command.ts";

interface Way {
  readonly way: "on the database" | "over HTTP";
  /** Runs the command with these arguments. */
  readonly run: (...args: string[]) => Promise<Ran>;
  readonly runOn: (terminal: Partial<Terminal>, ...args: string[]) => Promise<Ran>;
  /** The arguments that name who acts; over HTTP the key does, and has this name from now on. */
  readonly by: (name: string) => string[];
}

/** Returns a test function that runs a command on the database, and over HTTP with an admin's key. The time may change. */
export function testBothWays(
  create: (readConfig: () => Config, io: StoreIo) => Command,
  world: () => { readonly database: MigratedDatabase; readonly now: number },
) {
  return (name: string, body: (way: Way) => Promise<void>) => {
    test(`${name}, on the database`, async () => {
      const { database } = world();
      const runOn: Way["runOn"] = (terminal, ...args) =>
        runStoreCommand(create, { DATABASE_URL: database.url }, args, { now: world().now, ...terminal });
      const run: Way["run"] = (...args) => runOn({}, ...args);
      await body({ way: "on the database", run, runOn, by: (who) => ["--by", who] });
    });
    test(`${name}, over HTTP`, async () => {
      const { database } = world();
      const { url } = await startArchive(database.url, {}, { clock: () => world().now });
      const keys = new Map<string, string>();
      let who = "admin";
      const runOn: Way["runOn"] = async (terminal, ...args) => {
        const name = who;
        const key = keys.get(name) ?? (await makeKey(database, "admin", { name })).key;
        keys.set(name, key);
        const environment = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
        return runStoreCommand(create, environment, args, { now: world().now, ...terminal });
      };
      const by = (name: string) => {
        who = name;
        return [];
      };
      await body({ way: "over HTTP", run: (...args) => runOn({}, ...args), runOn, by });
    });
  };
}
