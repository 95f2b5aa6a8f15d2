import { beforeAll, expect, onTestFinished, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { createSecret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { storeEvents } from "#test/db/new-events.ts";
import { makeEvent } from "#test/detection/trend-support.ts";
import { openEmulator, oracle } from "#test/emulator/support.ts";
import { clearAudit } from "../../cli/clear-audit.ts";
import { runStoreCommand } from "../../cli/run-store-command.ts";
import { ask, openApiWorld } from "./api-world.ts";

const coverageCommand = await loadSubject("coverage");

const world = openApiWorld();
const now = Date.now();
const HOUR = Math.floor(now / HOUR_MS) * HOUR_MS - 2 * HOUR_MS;
const DAY = new Date(HOUR).toISOString().slice(0, 10);
const SPAN = { from: new Date(HOUR).toISOString(), to: new Date(HOUR + HOUR_MS).toISOString() };
const PATH = "/api/v1/coverage/withdrawals";

interface Answer {
  readonly events: number;
  readonly records: number | null;
  readonly logIds: string[];
  readonly shown: string[];
  readonly unknown: string[];
  readonly isRemoved: boolean;
}

const post = (more: object, status = 200) => ({
  status,
  method: "POST",
  body: JSON.stringify({ zone: 101, ...SPAN, reason: "foreign", ...more }),
});

/** The service over a platform that shows `own`, of which it has stored some beside foreign events. */
async function open() {
  const emulator = await openEmulator({ clock: () => now, historyHours: 4, eventsPerSecond: 0.05 });
  const transport = createEdgeTransport({
    baseUrl: emulator.url,
    accessKey: createSecret(emulator.accessKey),
  });
  onTestFinished(() => transport.close());
  const own = (await oracle(emulator))
    .filter(({ timestamp }) => timestamp >= HOUR && timestamp < HOUR + HOUR_MS)
    .slice(0, 3);
  const foreign = Array.from({ length: 120 }, (_, index) => ({
    logId: `alien-${index}`,
    timestamp: HOUR + index,
  }));
  const events = [...own, ...foreign].map(({ logId, timestamp: occurredAt }) =>
    makeEvent({ logId, occurredAt }),
  );
  await storeEvents(world.database(), 101, events, { expectNew: false });
  const { url } = await world.start({ edge: createEdgeClient(transport) });
  return { url, own, foreign };
}

beforeAll(async () => {
  await ensurePartitions(world.database(), [DAY]);
});

async function stored(): Promise<number> {
  const { rows } = await world
    .database()
    .pool.query<{ n: number }>("select count(*)::int as n from waf_events where zone_id = 101");
  return rows[0]?.n ?? 0;
}

test("an admin's key first learns what would be removed, and then removes what the platform does not show", async () => {
  const { url, own } = await open();
  await clearAudit(world.database());
  const key = await world.key("admin");
  const dry = await ask<Answer>(url, PATH, key, post({ allUnshown: true }));
  expect(dry).toMatchObject({ events: 120, records: null, isRemoved: false });
  expect(dry.logIds).toHaveLength(100);
  expect(await stored()).toBe(own.length + 120);

  const shown = own.map(({ logId }) => logId);
  const named = { logIds: ["alien-7", "no such", ...shown], dryRun: false };
  const one = await ask<Answer>(url, PATH, key, post(named));
  expect(one).toMatchObject({ events: 1, logIds: ["alien-7"], unknown: ["no such"], isRemoved: true });
  expect(one.shown.toSorted()).toEqual(shown.toSorted());

  const rest = await ask<Answer>(url, PATH, key, post({ allUnshown: true, dryRun: false }));
  expect(rest).toMatchObject({ events: 119, records: 0, isRemoved: true });
  expect(await stored()).toBe(own.length);
  const { rows } = await world
    .database()
    .pool.query<{ actor: string }>("select actor from audit_entries where action = 'events.withdrawn'");
  expect(rows).toHaveLength(2);
  expect(rows[0]?.actor).toMatch(/^key \S+ \(admin\)$/);
});

test("the command removes them over HTTP, and counts more ids than the answer has", async () => {
  const { url, own } = await open();
  const key = await world.key("admin");
  const typed = ["withdraw", "--zone", "101", "--from", SPAN.from, "--to", SPAN.to, "--all-unshown"];
  const environment = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
  const run = (...more: string[]) =>
    runStoreCommand(coverageCommand, environment, [...typed, "--reason", "foreign", ...more], { now });
  const dry = await run();
  expect(dry).toMatchObject({ code: 0, err: "" });
  expect(dry.out).toMatch(/: 120 events that the platform does not show\n {2}ids: .* and 117 more\n/);
  expect((await run("--yes")).out).toContain("UTC: 120 events and 0 records removed\n");
  expect(await stored()).toBe(own.length);
  expect((await run("--by", "alice")).err).toContain("--by cannot be used with another service's address");
});

test("other roles, other zones, wrong spans and hours without a check are refused", async () => {
  const { url } = await open();
  const before = await stored();
  const all = { allUnshown: true, dryRun: false };
  for (const role of ["reader", "operator"] as const)
    await ask(url, PATH, await world.key(role), post(all, 403));
  await ask(url, PATH, await world.key("admin", { zoneIds: [102] }), post(all, 403));
  const key = await world.key("admin");
  await ask(url, PATH, key, post({ zone: 999, ...all }, 404));
  const mistakesOf = async (body: object, status: number) => {
    const { mistakes } = await ask<{ mistakes: { field: string }[] }>(url, PATH, key, post(body, status));
    return mistakes.map(({ field }) => field);
  };
  expect(await mistakesOf({}, 400)).toEqual(["logIds"]);
  expect(await mistakesOf({ ...all, logIds: ["a"] }, 400)).toEqual(["logIds"]);
  expect(await mistakesOf({ ...all, reason: "" }, 400)).toEqual(["reason"]);
  expect(await mistakesOf({ ...all, from: new Date(HOUR + 1).toISOString() }, 422)).toEqual(["from"]);
  const old = {
    from: new Date(HOUR - 80 * HOUR_MS).toISOString(),
    to: new Date(HOUR - 79 * HOUR_MS).toISOString(),
  };
  expect(await mistakesOf({ ...all, ...old }, 422)).toEqual(["from"]);
  // A process without a platform.
  const alone = await world.start();
  expect(await ask(alone.url, PATH, key, post(all, 409))).toMatchObject({
    detail: "the platform cannot be asked: EDGE_API_URL is not set",
  });
  expect(await stored()).toBe(before);
});
