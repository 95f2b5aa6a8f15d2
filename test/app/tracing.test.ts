import { createServer } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openTracing, tracePages } from "#app/open-tracing.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { createStopStack } from "#lib/stop-stack.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { openNotifier } from "#stages/delivery/channels/open-notifier.ts";
import { createAlertWorld } from "../alerting/alert-world.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { createDetectWorld, DAYS, eventsOf, START } from "../detection/detect-support.ts";
import { runJob, ZONE } from "../detection/trend-support.ts";
import { silent } from "../ingest/ingest-support.ts";

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, DAYS);
});

afterAll(() => database.drop());

/** A collector that speaks OTLP/JSON over HTTP. */
async function startCollector() {
  const spans: Span[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      bodies.push(`${request.method} ${request.url} ${request.headers["content-type"]} ${body}`);
      const { resourceSpans } = JSON.parse(body) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}`, spans, bodies };
}

test("one trace leads from the page over events and spike to the message on a channel", async () => {
  const collector = await startCollector();
  const stack = createStopStack(() => undefined);
  const trace = await openTracing({ traceEndpoint: collector.url }, silent, stack);
  if (trace === null) throw new Error("no tracing");
  const world = createDetectWorld(database);
  const burst = (START + 6) * MINUTE_MS;
  const parts = { database, clock: () => burst, log: silent, trace, lookEveryMs: 20 };
  const observer = tracePages({ pageStored: () => undefined }, parts, stack);
  const page = {
    route: "search",
    zoneId: ZONE,
    entries: 90,
    filled: 0,
    quarantined: 0,
    held: 0,
    bytes: 1,
  } as const;
  observer.pageStored({ ...page, inserted: 90, commitMs: 12 });
  observer.pageStored({ ...page, inserted: 0, commitMs: 5 });
  observer.pageStored({ ...page, zoneId: 7, inserted: 1, commitMs: 5 });
  await world.keep(eventsOf([90], START + 5));
  await world.tickThrough(START + 5, START + 7, world.createDetector({ trace }));
  const alerting = createAlertWorld(database);
  await alerting.runAt(0, { channels: ["ops"], clock: () => burst + 2 * MINUTE_MS, zoneIds: [ZONE] });
  const printed: string[] = [];
  const terminal = {
    write(text: string, done: () => void) {
      printed.push(text);
      done();
      return true;
    },
  };
  const network = { allowPrivateNetworks: false };
  const ops = openNotifier({ kind: "terminal", name: "ops" }, { terminal, clock: Date.now, network });
  await runJob(createDeliverAlertsJob({ database, notifiers: new Map([["ops", ops]]), log: silent, trace }));
  expect(printed).toHaveLength(1);

  const names = ["detect", "events", "notify ops", "send", "spike", "store page of the search"];
  await expect.poll(() => collector.spans.map(({ name }) => name).sort(), { timeout: 10_000 }).toEqual(names);
  const [first] = collector.spans;
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([first?.traceId]));
  const idOf = (name: string) => collector.spans.find((span) => span.name === name)?.spanId;
  const parents = Object.fromEntries(
    collector.spans.map(({ name, parentSpanId }) => [name, parentSpanId ?? null]),
  );
  expect(parents).toEqual({
    spike: null,
    events: idOf("spike"),
    detect: idOf("spike"),
    "store page of the search": idOf("spike"),
    "notify ops": idOf("spike"),
    send: idOf("notify ops"),
  });
  for (const { startTimeUnixNano: from, endTimeUnixNano: to } of collector.spans)
    expect(BigInt(to)).toBeGreaterThanOrEqual(BigInt(from));
  expect(collector.bodies[0]).toMatch(/^POST \/v1\/traces application\/json /);
  expect(collector.bodies.join("")).not.toContain("203.0.113");
  await stack.stop();
}, 60_000);

test("without an endpoint nothing is traced, and a collector that is down stops nothing", async () => {
  const stack = createStopStack(() => undefined);
  expect(await openTracing({ traceEndpoint: null }, silent, stack)).toBeNull();
  const warned: unknown[] = [];
  const log = { warn: (...given: unknown[]) => void warned.push(given) };
  const trace = await openTracing({ traceEndpoint: "http://127.0.0.1:9" }, log as never, stack);
  const span = {
    traceId: "a".repeat(32),
    spanId: "b".repeat(16),
    parentId: null,
    name: "x",
    startMs: 1,
    endMs: 2,
  };
  trace?.([{ ...span, attributes: {} }]);
  await stack.stop();
  await expect.poll(() => warned.length, { timeout: 20_000 }).toBe(1);
}, 30_000);
