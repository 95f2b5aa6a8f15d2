import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import pino from "pino";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { createApp, type RunningApp } from "#app/app.ts";
import { parseServiceConfig } from "#config/config.ts";
import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";
import { oracle } from "../emulator/support.ts";
import { createTestDatabase } from "../support/database.ts";
import { findRedisServer, startTestRedis, type TestRedis } from "../support/redis.ts";
import { writeSchedule } from "../support/write-schedule.ts";

const SIGNING_SECRET = `whsec_${Buffer.from("a signing secret of 32 bytes ....").toString("base64")}`;
const Posted = z.object({
  type: z.string(),
  data: z.looseObject({
    reason: z.string(),
    kind: z.string(),
    zoneId: z.number().nullable(),
    headline: z.string(),
    ruleId: z.string().nullable(),
    advice: z.looseObject({ state: z.string(), text: z.string().nullable() }),
  }),
});

const server = findRedisServer();
let redis: TestRedis | undefined;

beforeAll(async () => {
  if (server !== null) redis = await startTestRedis(server);
});
afterAll(() => redis?.stop());

/** Somebody's on-call tool: takes what is posted and checks the signature. */
async function openReceiver() {
  const posted: z.infer<typeof Posted>["data"][] = [];
  const webhook = new Webhook(SIGNING_SECRET);
  const take = async (request: IncomingMessage) => {
    const body = Buffer.concat(await request.toArray()).toString();
    posted.push(Posted.parse(webhook.verify(body, request.headers as Record<string, string>)).data);
  };
  const receiver = createServer((request, response) => {
    take(request).then(
      () => response.end(),
      () => response.writeHead(500).end(),
    );
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  onTestFinished(() => void receiver.close());
  const { port } = receiver.address() as AddressInfo;
  return { posted, url: `http://127.0.0.1:${port}/hook` };
}

/** A room of a chat: keeps what is posted. */
async function openChat() {
  const posted: string[] = [];
  const receiver = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      posted.push(Buffer.concat(chunks).toString());
      response.end("ok");
    });
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  onTestFinished(() => void receiver.close());
  const { port } = receiver.address() as AddressInfo;
  return { posted, url: `http://127.0.0.1:${port}/services/T0/B0/x` };
}

async function openService(emulator: Emulator, env: Record<string, string>) {
  const dataDir = mkdtempSync(path.join(tmpdir(), "longwatch-app-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const config = parseServiceConfig({
    EDGE_API_URL: emulator.url,
    EDGE_API_KEY: emulator.accessKey,
    EDGE_SHIELD_ZONES: "101,102",
    EDGE_REQUESTS_PER_SECOND: "1000",
    LONGWATCH_DATA_DIR: dataDir,
    LONGWATCH_PORT: "0",
    ...writeSchedule(dataDir, {
      "poll-events": "* * * * * *",
      "roll-up-trends": "*/2 * * * * *",
      "detect-spikes": "*/2 * * * * *",
    }),
    LONGWATCH_METRICS_PUBLIC: "true",
    ...env,
  });
  const printed: string[] = [];
  const terminal = {
    write: (text: string, done: (error?: Error | null) => void) => {
      printed.push(text);
      done();
      return true;
    },
  };
  const app = createApp({ config, log: pino({ level: "silent" }), terminal, onStep: () => undefined });
  onTestFinished(() => app.stop());
  return { app, running: await app.start(), printed };
}

async function storedIds({ database }: RunningApp): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    "select zone_id || ' ' || log_id as id from waf_events",
  );
  return rows.map(({ id }) => id).sort();
}

async function shownIds(emulator: Emulator): Promise<string[]> {
  const zones = await Promise.all(
    [101, 102].map(async (zone) => (await oracle(emulator, zone)).map(({ logId }) => `${zone} ${logId}`)),
  );
  return zones.flat().sort();
}

// Both stores of the queues have tests of their own. This one uses Redis where there is one.
test("events become a page on a phone, then the AI's advice, and everything adds up", async () => {
  const emulator = await createEmulator({
    historyHours: 10,
    eventsPerSecond: 0.05,
    lateShare: 0,
    attacks: [
      "zone=101,rule=942100,start=-5m,duration=4m,rate=4/s",
      "zone=102,kind=scanner,start=-6m,duration=12m,rate=15/m",
    ],
  });
  onTestFinished(() => emulator.close());
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { posted, url } = await openReceiver();
  const chat = await openChat();

  const { app, running, printed } = await openService(emulator, {
    DATABASE_URL: database.url,
    ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
    LONGWATCH_WEBHOOK_URL: url,
    LONGWATCH_WEBHOOK_SECRET: SIGNING_SECRET,
    LONGWATCH_SLACK_WEBHOOK_URL: chat.url,
    LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true",
  });

  const ofAttack = () => posted.filter(({ ruleId }) => ruleId === "942100");
  await vi.waitFor(() => {
    // The recommendation comes in a message of its own, unless it was quicker than the first.
    expect(ofAttack()[0]?.reason).toBe("first");
    expect(ofAttack().at(-1)?.advice).toMatchObject({
      state: "present",
      text: expect.stringMatching(/\w/),
    });
    // Each channel has its own pace.
    expect(printed.join("")).toContain("rule 942100");
  }, 20_000);

  // No rule of the scanner has many events. All its rules together raise an alert, on every channel.
  // The look that finds it may be at its twelfth rule in one minute, or at its fifteenth in three.
  const scanner =
    /Many rules from one address in zone 102:\s+\S+\s+(?:triggered|sent\s+\d+\s+events\s+of)\s+(\d+)\s+different\s+rules/;
  await vi.waitFor(() => {
    const message = posted.find(({ kind, zoneId }) => kind === "sources" && zoneId === 102);
    expect(message).toMatchObject({
      zoneId: 102,
      reason: "first",
      headline: expect.stringMatching(scanner),
    });
    expect(Number(scanner.exec(message?.headline ?? "")?.[1])).toBeGreaterThanOrEqual(12);
    expect(chat.posted.join("")).toMatch(scanner);
    expect(printed.join("").replaceAll(/\s*\n│ /g, " ")).toMatch(scanner);
    // The series are judged once a minute, at an hour's end after the hour is counted.
  }, 150_000);

  await vi.waitFor(async () => expect(await storedIds(running)).toEqual(await shownIds(emulator)), 20_000);
  const now = running.clock();
  const range = { from: new Date(now - 72 * HOUR_MS), to: new Date(now) };
  await vi.waitFor(async () => {
    const differing = await compareBuckets(running.database.db, range);
    expect(differing).toEqual([]);
  }, 10_000);
  const metrics = await (await fetch(`${running.httpUrl}/metrics`)).text();
  expect(metrics).toMatch(/longwatch_notifications_total\{channel="webhook",outcome="delivered"\} [1-9]/);
  await app.stop();
});
