import type { Command } from "commander";
import { test } from "vitest";
import { type Config, parseConfig } from "#config/config.ts";
import type { StoreIo } from "#faces/cli/store/store-command.ts";
import type { MigratedDatabase } from "../../db/migrated-database.ts";
import { RUNS_ALL } from "../../support/sample.ts";
import { SERVICE } from "../http/default-service.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { type Ran, runStoreCommand, type Terminal } from "./run-store-command.ts";

export interface Way {
  readonly way: "on the database" | "over HTTP";
  /** Runs the command with these arguments. */
  readonly run: (...args: string[]) => Promise<Ran>;
  readonly runOn: (terminal: Partial<Terminal>, ...args: string[]) => Promise<Ran>;
  /** The arguments that name who acts; over HTTP the key does, and has this name from now on. */
  readonly by: (name: string) => string[];
}

type Create = (readConfig: () => Config, io: StoreIo) => Command;

type Test = (name: string, body: (way: Way) => Promise<void>) => void;

/**
 * Returns a test function that runs a command on the database. Its `both` runs the command over HTTP too, with an admin's key: for the
 * tests whose flags, names of persons, pages or refusals an HTTP request has to carry. The soak runs every test both ways. The time
 * may change.
 */
export function testBothWays(
  create: Create,
  world: () => { readonly database: MigratedDatabase; readonly now: number },
  /** Other subjects, which are run if the first argument names one. */
  others: Readonly<Record<string, Create>> = {},
  /** Further settings, of the command on the database and of the service. */
  settings: Readonly<Record<string, string>> = {},
): Test & { readonly both: Test } {
  const runWith = (environment: Record<string, string>, args: string[], terminal: Terminal) => {
    const [first = "", ...rest] = args;
    const other = others[first];
    return other === undefined
      ? runStoreCommand(create, environment, args, terminal)
      : runStoreCommand(other, environment, rest, terminal);
  };
  const service = { ...SERVICE, alerting: () => parseConfig(settings).alerting };
  const onDatabase: Test = (name, body) =>
    test(`${name}, on the database`, async () => {
      const { database } = world();
      const runOn: Way["runOn"] = (terminal, ...args) =>
        runWith({ DATABASE_URL: database.url, ...settings }, args, { now: world().now, ...terminal });
      const run: Way["run"] = (...args) => runOn({}, ...args);
      await body({ way: "on the database", run, runOn, by: (who) => ["--by", who] });
    });
  const overHttp: Test = (name, body) =>
    test(`${name}, over HTTP`, async () => {
      const { database } = world();
      const { url } = await startArchive(database.url, {}, { clock: () => world().now, service });
      const keys = new Map<string, string>();
      let who = "admin";
      const runOn: Way["runOn"] = async (terminal, ...args) => {
        const name = who;
        const key = keys.get(name) ?? (await makeKey(database, "admin", { name })).key;
        keys.set(name, key);
        const environment = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
        return runWith(environment, args, { now: world().now, ...terminal });
      };
      const by = (name: string) => {
        who = name;
        return [];
      };
      await body({ way: "over HTTP", run: (...args) => runOn({}, ...args), runOn, by });
    });
  const both: Test = (name, body) => {
    onDatabase(name, body);
    overHttp(name, body);
  };
  return Object.assign(RUNS_ALL ? both : onDatabase, { both });
}
