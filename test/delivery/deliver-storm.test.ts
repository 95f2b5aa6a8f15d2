import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { sql } from "drizzle-orm";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { claimDueNotifications, lockDigestCandidates } from "#db/delivery/notifications.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type MigratedDatabase } from "../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "./deliver-world.ts";
import { asKind } from "./support/capabilities.ts";

const LEASE_MS = 60_000;
const PROCESS = fileURLToPath(new URL("deliver-process.ts", import.meta.url));
let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});

beforeEach(() => world.clear());

/** So many rules fire at once; each with its own rule id, from 100001 on. */
async function storm(alerts: number): Promise<void> {
  const template = await world.raise(["first"]);
  await database.db.execute(sql`
    with raised as (
      insert into alerts (fired_at, kind, fingerprint)
      select now(), 'spike', 'storm-' || n from generate_series(1, ${alerts}::integer) n
      returning id, (100000 + split_part(fingerprint, '-', 2)::integer)::text as rule)
    insert into notifications (alert_id, transition, reason, channel, dedupe_key, content)
    select a.id, 1, 'first', 'chat', 'storm-' || a.id,
      n.content || jsonb_build_object('alertId', a.id, 'ruleId', a.rule)
    from raised a, notifications n where n.alert_id = ${template}`);
  await database.db.execute(sql`delete from alerts where id = ${template}`);
}

/** The rules that were named, one by one or in a digest. */
function named(): string[] {
  return receiver.received.flatMap(({ message }) =>
    message.digest === undefined ? [message.ruleId ?? ""] : message.digest.map(({ name }) => name),
  );
}

/** What a rate allows from `startedAt` on after a minute without messages, with so many emulated minutes since; real time counts too. */
function allowed(perMinute: number, startedAt: number, minutes: number): number {
  return Math.ceil(perMinute * (1 + minutes + (Date.now() - startedAt) / MINUTE_MS));
}

const digests = () => receiver.received.filter(({ message }) => message.digest !== undefined);
/** Minute by minute, until nothing waits. */
async function deliverAll(): Promise<void> {
  for (let minute = 0; minute < 20 && (await world.outbox()).some(isOpen); minute += 1) {
    await world.run();
    await world.pass(MINUTE_MS);
  }
  expect((await world.outbox()).filter(isOpen)).toEqual([]);
}

const isOpen = (row: string) => !row.endsWith("delivered");

test("F63: of 1,500 alerts becomes a bounded number of messages in which every rule is found once", async () => {
  await storm(1_500);
  const startedAt = Date.now();
  let minutes = 0;
  while ((await world.outbox()).some(isOpen) && minutes < 10) {
    await Promise.all([world.run(), world.run()]);
    await world.pass(MINUTE_MS);
    minutes += 1;
  }

  const rules = named();
  expect(rules).toHaveLength(1_500);
  expect(new Set(rules).size).toBe(1_500);
  expect(minutes).toBeLessThanOrEqual(3);
  expect(receiver.received.length).toBeLessThanOrEqual(allowed(120, startedAt, minutes - 1));
  expect(receiver.mostInFlight()).toBeLessThanOrEqual(8);
});

test("F63: a claim reads a storm's rows a few times each, although the statistics are those of days with few messages", async () => {
  await storm(1_000);
  await database.db.execute(sql`update notifications set state = 'delivered'`);
  await database.db.execute(sql`update alerts set fingerprint = 'earlier-' || id`);
  await database.pool.query("vacuum analyze notifications");
  await storm(1_000);
  const read = await inTransaction(database, async ({ tx }) => {
    // The figure also holds what earlier transactions of the connection read, until Postgres has reported it.
    const readSoFar = async () => {
      const { rows } = await tx.execute<{ read: string }>(
        sql`select pg_stat_get_xact_tuples_returned('notifications_due'::regclass) as read`,
      );
      return Number(rows[0]?.read);
    };
    const before = await readSoFar();
    const { candidates } = await lockDigestCandidates(tx, { channel: "chat", limit: 1_000 });
    expect(candidates).toHaveLength(1_000);
    await claimDueNotifications(tx, { channel: "chat", limit: 1_000, leaseMs: LEASE_MS });
    return (await readSoFar()) - before;
  });
  expect(read).toBeLessThan(30_000);
});

test("F63: a channel is never sent more in a minute than its rate, however many deliver", async () => {
  await storm(500);
  const notifiers = headlinesOnly();
  const startedAt = Date.now();
  await Promise.all(Array.from({ length: 4 }, () => world.run(["chat"], { notifiers })));
  expect(receiver.received.length).toBeGreaterThanOrEqual(20);
  expect(receiver.received.length).toBeLessThanOrEqual(allowed(20, startedAt, 0));
  await world.pass(30_000);
  await world.run(["chat"], { notifiers });
  expect(receiver.received.length).toBeGreaterThanOrEqual(30);
  expect(receiver.received.length).toBeLessThanOrEqual(allowed(20, startedAt, 0.5));
});

/** The webhooks of the test, as a kind of channel that shows no more than a headline. */
function headlinesOnly() {
  const [[name, notifier] = ["chat", undefined]] = world.notifiers(["chat"]);
  if (notifier === undefined) throw new Error("no notifier");
  const rate = { perMinute: 20, digest: { in: "headline", maxChars: 220, charsBeside: 2 } } as const;
  return new Map([[name, { ...notifier, capabilities: { ...notifier.capabilities, rate } }]]);
}

test("where only headlines are shown, a digest's names are in it, whole", async () => {
  await storm(60);
  await world.run(["chat"], { notifiers: headlinesOnly() });

  for (const { message } of digests()) {
    expect(message.headline.length).toBeLessThan(300);
    for (const { name } of message.digest ?? []) expect(message.headline).toContain(name);
  }
  expect(new Set(named()).size).toBe(60);
});

test("a receiver that closes alerts by key gets no digest: the rest waits", async () => {
  await storm(150);
  const [[name, notifier] = ["chat", undefined]] = world.notifiers(["chat"]);
  if (notifier === undefined) throw new Error("no notifier");
  const notifiers = new Map([[name, asKind(notifier, "pagerduty")]]);
  const startedAt = Date.now();
  await world.run(["chat"], { notifiers });
  expect(receiver.received.length).toBeLessThanOrEqual(allowed(100, startedAt, 0));
  await world.pass(MINUTE_MS);
  await world.run(["chat"], { notifiers });

  expect(digests()).toEqual([]);
  expect(new Set(named()).size).toBe(150);
});

test("F61: a digest whose reply was lost is sent again under the same key, and names the same", async () => {
  await storm(200);
  let lost = 0;
  receiver.answer("chat", (response, { message }) => {
    const isLost = message.digest !== undefined && lost === 0;
    if (isLost) lost += 1;
    if (isLost) response.destroy();
    else response.writeHead(204).end();
  });
  await deliverAll();

  const [first, second] = digests();
  expect(lost).toBe(1);
  expect(second?.id).toBe(first?.id);
  expect(second?.message).toEqual(first?.message);
  expect(new Set(named()).size).toBe(200);
});

test("F2: killed after a digest was posted and before its record, it is sent again under the same key", async () => {
  await storm(200);
  const child = fork(PROCESS, [database.url, receiver.url, "chat"]);
  const ended = once(child, "exit");
  receiver.answer("chat", (response, { message }) => {
    if (message.digest === undefined) response.writeHead(204).end();
    else child.kill("SIGKILL");
  });
  await ended;
  receiver.status("chat", 204);
  await Promise.all([world.run(), world.run()]);
  const [killed] = digests();
  await world.pass(LEASE_MS);
  await deliverAll();

  const again = digests().filter(({ id }) => id === killed?.id);
  expect(again).toHaveLength(2);
  expect(again[1]?.message).toEqual(killed?.message);
  expect(new Set(named()).size).toBe(200);
});

test("a digest that is refused is taken apart: each message goes alone", async () => {
  await storm(200);
  receiver.answer("chat", (response, { message }) => {
    response.writeHead(message.digest === undefined ? 204 : 400).end();
  });
  await deliverAll();

  expect(new Set(digests().map(({ id }) => id)).size).toBe(digests().length);
  expect(digests().length).toBeGreaterThan(0);
  expect(new Set(receiver.received.flatMap(({ message }) => message.ruleId ?? [])).size).toBe(200);
});

test("a resolve follows the digest that contained its alert", async () => {
  await storm(120);
  for (const { id } of await world.alerts()) await world.add(id, 2, "resolved");
  for (let round = 0; round < 3; round += 1) {
    await world.run();
    await world.pass(MINUTE_MS);
  }

  const heard = receiver.received.flatMap(({ message }) =>
    (message.digest ?? [message]).map(({ alertId, reason }) => ({ alertId, reason })),
  );
  const byAlert = Map.groupBy(heard, ({ alertId }) => alertId);
  expect(byAlert.size).toBe(120);
  for (const told of byAlert.values())
    expect(told.map(({ reason }) => reason)).toEqual(["first", "resolved"]);
});

test("says how many messages were digested", async () => {
  await storm(200);
  const told: number[] = [];
  await world.run(["chat"], { onDigest: (_channel, messages) => told.push(messages) });

  expect(told.reduce((sum, messages) => sum + messages, 0)).toBe(
    200 - (receiver.received.length - told.length),
  );
  expect(told.length).toBeGreaterThan(0);
});
