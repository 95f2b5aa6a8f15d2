import { expect, onTestFinished, test } from "vitest";
import { loadSubject } from "#faces/cli/commands.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { startProxy } from "./proxy.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const PREFIX = "/longwatch";

test("commands reach a service below a path of a proxy, with and without a slash at the end of its address", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { url } = await startArchive(database.url);
  const origin = await startProxy(url, {
    toPath: (path) => (path.startsWith(`${PREFIX}/api/`) ? path.slice(PREFIX.length) : null),
  });
  const { key } = await makeKey(database, "admin");
  const known = await loadSubject("known");
  const run = (address: string, ...args: string[]) =>
    runStoreCommand(known, { LONGWATCH_URL: address, LONGWATCH_KEY: key }, args, { now: NOW });

  const added = await run(`${origin}${PREFIX}/`, "add", "--ip", "198.51.100.7", "--reason", "ours");
  expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/is added\.\n$/) });
  expect((await run(`${origin}${PREFIX}`, "list")).out).toContain("198.51.100.7");
  expect(await run(origin, "list")).toMatchObject({
    code: 1,
    err: expect.stringContaining("does not know this operation (HTTP 404)"),
  });
});
