import { readFileSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { createEmulator } from "#emulator/emulator.ts";
import { findCluster } from "#store/embedded/place-cluster.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { startWebhookReceiver } from "../faults/webhook-receiver.ts";
import { openQuickFolder } from "../support/small-disk.ts";
import { writeSchedule } from "../support/write-schedule.ts";

const WAIT = { timeout: 120_000, interval: 200 };

/** Less than the cluster and the log that the test writes. */
const SMALL_MB = 500;

/** The service with its own Postgres in this folder, on an emulator of the platform that is here. */
async function startService(dataDir: string, env: Record<string, string>) {
  const emulator = await createEmulator({ zones: [101], historyHours: 1 });
  onTestFinished(() => emulator.close());
  const service = startServiceProcess({
    EDGE_API_URL: emulator.url,
    EDGE_API_KEY: emulator.accessKey,
    EDGE_SHIELD_ZONES: "101",
    EDGE_REQUESTS_PER_SECOND: "1000",
    ...writeSchedule(dataDir, { "poll-events": "* * * * * *" }),
    LONGWATCH_DATA_DIR: dataDir,
    ...env,
  });
  onTestFinished(async () => {
    service.child.kill("SIGKILL");
    await service.exited;
  });
  await expect.poll(() => service.printed(), WAIT).toContain("service started");
  return { ...service, emulator };
}

async function query(dataDir: string, text: string) {
  const client = new pg.Client({ connectionString: readRuntimeFile(dataDir)?.databaseUrl });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query(text)).rows[0] as Record<string, unknown>;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** When the search last came to its end, by the database. */
const lastPoll = async (dataDir: string) =>
  Number(
    (await query(dataDir, "select extract(epoch from max(searched_through)) as at from coverage_windows"))[
      "at"
    ],
  );

/** Returns what `status` prints, and its exit code. */
async function readStatus(dataDir: string) {
  const status = startServiceProcess({ LONGWATCH_DATA_DIR: dataDir }, "status");
  return { code: await status.exited, printed: status.printed() };
}

test("after kill -9 of its Postgres the service polls on by itself and shows the outage in `status`; a full disk that ends its Postgres is alerted without the database, named by `status`, and over when it is enlarged", async (context) => {
  const { disk, folder } = openQuickFolder();
  const dataDir = path.join(folder, "longwatch");
  const receiver = await startWebhookReceiver();
  onTestFinished(() => receiver.close());
  const service = await startService(dataDir, receiver.env);
  await expect.poll(() => lastPoll(dataDir), WAIT).toBeGreaterThan(0);

  const [pid] = readFileSync(path.join(findCluster(dataDir), "postmaster.pid"), "utf8").split("\n");
  process.kill(Number(pid), "SIGKILL");
  const killedAt = Date.now() / 1_000;
  await expect.poll(() => service.printed(), WAIT).toContain("embedded Postgres restarted");
  await expect.poll(() => lastPoll(dataDir).catch(() => 0), WAIT).toBeGreaterThan(killedAt);
  expect(service.printed()).toMatch(/"reason":"signal 9".*"msg":"embedded Postgres ended"/);
  const restarted = await readStatus(dataDir);
  // The oldest hours of so young a copy are near their loss, which needs no attention.
  expect([0, 3]).toContain(restarted.code);
  const lines = restarted.printed.trimEnd().split("\n");
  expect(lines.at(-1)).toMatch(
    /^The embedded Postgres was down from .* UTC \(signal 9\); it was restarted\.$/,
  );
  // An hour may have expired while Postgres was down. Nothing else needs attention.
  const expired = /^ {2}Zone 101: \d+ hours? between .* can never be proven complete: /;
  const attention = lines.includes("Needs attention:")
    ? lines.slice(lines.indexOf("Needs attention:") + 1, -1)
    : [];
  expect(attention.filter((line) => !expired.test(line))).toEqual([]);

  if (disk === null) {
    context.skip("this user may not mount a disk");
    return;
  }
  const isAboutDatabase = ({ alertId }: { alertId: number }) => alertId === 0;
  expect(receiver.received.filter(isAboutDatabase)).toEqual([]);
  disk.shrink(SMALL_MB);
  // Writes to the server's log only; without room for its next file the server ends. What its end gives back is taken again.
  const write = "select pg_logical_emit_message(false, 'test', repeat('x', 10000000))";
  await expect
    .poll(async () => {
      disk.fill();
      await query(dataDir, write).catch(() => undefined);
      return service.printed();
    }, WAIT)
    .toContain("embedded Postgres not restarted");

  await expect.poll(() => receiver.received.filter(isAboutDatabase), WAIT).toHaveLength(1);
  expect(receiver.received.find(isAboutDatabase)).toMatchObject({
    reason: "first",
    kind: "self",
    severity: "critical",
    headline: expect.stringMatching(/disk .*is full.*\(mounted at .*longwatch-disk/),
  });
  const down = await readStatus(dataDir);
  expect(down.code).toBe(1);
  expect(down.printed).toMatch(/its embedded Postgres has been down since/);
  expect(down.printed).toMatch(/No space left on device/);
  expect(down.printed).toMatch(/The disk is full: the disk of .* free\. Free space or enlarge the disk\./);
  expect(down.printed).not.toContain("DATABASE_URL");

  disk.enlarge(3 * SMALL_MB);
  const enlargedAt = Date.now() / 1_000;
  await expect.poll(() => lastPoll(dataDir).catch(() => 0), WAIT).toBeGreaterThan(enlargedAt);
});
