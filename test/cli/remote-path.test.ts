import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { loadSubject } from "#faces/cli/operations/subjects.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const PREFIX = "/longwatch";

/** Returns the origin of a proxy that forwards what is below the prefix to the service at `url`, and nothing else. */
async function startProxy(url: string): Promise<string> {
  const proxy = createServer((asked, answer) => {
    const { url: path = "", method = "GET", headers } = asked;
    if (path.startsWith(`${PREFIX}/api/`))
      asked.pipe(
        request(`${url}${path.slice(PREFIX.length)}`, { method, headers }, (got) =>
          got.pipe(answer.writeHead(got.statusCode ?? 502, got.headers)),
        ),
      );
    else answer.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void proxy.close());
  await once(proxy, "listening");
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test("commands reach a service below a path of a proxy, with and without a slash at the end of its address", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { url } = await startArchive(database.url);
  const origin = await startProxy(url);
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
