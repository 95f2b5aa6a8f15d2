import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { toRequestBudget } from "#app/open-accounts.ts";
import { takeTokens } from "#db/ingest/request-budgets.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { listPage } from "./support/edge-test.ts";

const RATE = 50;
const REQUESTS = 200;
const FIRST_LIMITED = 50;
/**
 * From these requests on, two zones get a 429 each: a limit of the account. Further apart than what may be under way
 * when the first pause begins: three replicas with nine tokens each.
 */
const LIMITS: readonly { readonly from: number; readonly headers: Record<string, string> }[] = [
  { from: FIRST_LIMITED, headers: { "retry-after": "1" } },
  { from: 120, headers: {} },
];
const PAUSED_SECONDS = 2;

/** Answers every request with an empty page but those of LIMITS, and remembers when they came and from whom. */
async function startLimiter() {
  const arrivals: { at: number; zone: string }[] = [];
  const limited = LIMITS.map((): Set<string> => new Set());
  const page = JSON.stringify(listPage());
  const server = createServer((request, response) => {
    const zone = request.url?.split("/")[3] ?? "";
    arrivals.push({ at: performance.now(), zone });
    const index = LIMITS.findIndex(({ from }, at) => {
      const zones = limited[at];
      return arrivals.length >= from && zones !== undefined && zones.size < 2 && !zones.has(zone);
    });
    limited[index]?.add(zone);
    const headers = { "content-type": "application/json", ...LIMITS[index]?.headers };
    response.writeHead(index === -1 ? 200 : 429, headers).end(index === -1 ? page : "");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { arrivals, limited, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function startReplica(...args: readonly string[]): Promise<ChildProcess> {
  const replica = fork(path.join(import.meta.dirname, "support", "limited-replica.ts"), args);
  onTestFinished(() => void replica.kill("SIGKILL"));
  await once(replica, "message");
  return replica;
}

test("three replicas send no more than one budget allows, whatever the platform answers and whoever dies (F40)", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { arrivals, limited, url } = await startLimiter();
  const zones = ["1", "2", "3"];
  const replicas = await Promise.all(
    zones.map((zone) => startReplica(zone, database.url, url, String(RATE))),
  );
  const startedAt = performance.now();
  // From an empty bucket: what arrives later was granted since, so that no slack for a burst hides an excess.
  await takeTokens(database.db, toRequestBudget({ name: "default", requestsPerSecond: RATE }), {
    atMost: RATE,
    reserve: 0,
  });
  for (const replica of replicas) replica.send("go");
  await vi.waitFor(() => expect(limited[0]?.size).toBe(2), 30_000);
  // Not one that was told to pause: killed before it stores the pause, it would take the pause with it.
  const victim = zones.findIndex((zone) => limited[0]?.has(zone) !== true);
  replicas[victim]?.kill("SIGKILL");
  await vi.waitFor(() => expect(arrivals.length).toBeGreaterThanOrEqual(REQUESTS), 30_000);

  const excess = arrivals.filter(
    ({ at }, index) => index + 1 > ((at - startedAt + 2) / 1_000) * RATE * 1.001,
  );
  expect(excess).toEqual([]);
  const seconds = ((arrivals[REQUESTS - 1]?.at ?? 0) - startedAt) / 1_000;
  expect(REQUESTS).toBeLessThanOrEqual((seconds - PAUSED_SECONDS) * RATE * 1.001 + 1);
  expect(new Set(arrivals.map(({ zone }) => zone))).toEqual(new Set(zones));
  const survivors = replicas.filter((_, index) => index !== victim);
  expect(survivors.map(({ exitCode }) => exitCode)).toEqual([null, null]);
});
