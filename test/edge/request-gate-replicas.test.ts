import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { takeTokens } from "../../db/service/request-budgets.ts";
import { toRequestBudget } from "../../src/app/open-request-gate.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { listPage } from "./support/edge-test.ts";

const RATE = 50;
const REQUESTS = 200;
const FIRST_LIMITED = 50;
/** Further apart than what may be under way when the first pause begins: five replicas with nine tokens each. */
const LIMITED: ReadonlyMap<number, Record<string, string>> = new Map([
  [FIRST_LIMITED, { "retry-after": "1" }],
  [120, {}],
]);
const PAUSED_SECONDS = 2;

/** Answers every request with an empty page but those of LIMITED, and remembers when they came and from whom. */
async function startLimiter() {
  const arrivals: { at: number; zone: string }[] = [];
  const page = JSON.stringify(listPage());
  const server = createServer((request, response) => {
    arrivals.push({ at: performance.now(), zone: request.url?.split("/")[3] ?? "" });
    const limit = LIMITED.get(arrivals.length);
    response.writeHead(limit === undefined ? 200 : 429, { "content-type": "application/json", ...limit });
    response.end(limit === undefined ? page : "");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { arrivals, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function startReplica(...args: readonly string[]): Promise<ChildProcess> {
  const replica = fork(path.join(import.meta.dirname, "support", "limited-replica.ts"), args);
  onTestFinished(() => void replica.kill("SIGKILL"));
  await once(replica, "message");
  return replica;
}

test("five replicas send no more than one budget allows, whatever the platform answers and whoever dies (F40)", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { arrivals, url } = await startLimiter();
  const zones = ["1", "2", "3", "4", "5"];
  const replicas = await Promise.all(
    zones.map((zone) => startReplica(zone, database.url, url, String(RATE))),
  );
  const startedAt = performance.now();
  // From an empty bucket: what arrives later was granted since, so that no slack for a burst hides an excess.
  await takeTokens(database.db, toRequestBudget(RATE), { atMost: RATE, reserve: 0 });
  for (const replica of replicas) replica.send("go");
  await vi.waitFor(() => expect(arrivals.length).toBeGreaterThan(FIRST_LIMITED), 30_000);
  // Not the one that was told to pause: killed before it stores the pause, it would take the pause with it.
  const limited = arrivals[FIRST_LIMITED - 1]?.zone;
  const victim = zones.findIndex((zone) => zone !== limited);
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
  expect(survivors.map(({ exitCode }) => exitCode)).toEqual([null, null, null, null]);
});
