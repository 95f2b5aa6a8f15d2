import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { writeDay } from "#jobs/archive/write-day.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { DAY, DAY_START, hostileEvents, NOW, ZONE } from "../../archive/files/archive-world.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { rollUp } from "../../people/erasure-world.ts";
import { POSTING } from "../sinks/world.ts";
import { openForwardWorld } from "./forward-world.ts";

const world = await openForwardWorld();
const { database, receiver } = world;
const { pool } = database;

beforeEach(async () => {
  await pool.query(`truncate waf_events, raw_blocks, rule_buckets, dirty_buckets, coverage_windows, archive_files,
    changed_minutes, forward_cursors, forward_destinations, forward_hours, forward_receipts, forward_refusals, event_revisions cascade`);
  receiver.stored.clear();
  receiver.next.length = 0;
  world.pauses.length = 0;
  world.setNow(DAY_START + 30 * HOUR_MS);
});

afterEach(() => expect(receiver.next).toEqual([]));

/** As after the pause of the destination. */
async function makeDueNow(): Promise<void> {
  await pool.query("update forward_destinations set retry_at = now()");
  await pool.query("update forward_hours set look_at = now() where look_at is not null");
}

const event = (minute: number, logId: string, over = {}) =>
  makeEvent({ occurredAt: DAY_START + minute * MINUTE_MS, logId, ...over });

test("every stored event arrives once, with its values, and each sealed hour has arrived", async () => {
  const events = hostileEvents();
  await world.store(events);
  await world.run();
  expect(receiver.stored.size).toBe(events.length);
  const [first] = events;
  expect(JSON.parse(receiver.stored.get(`${ZONE} ${first?.logId}`) ?? "")).toMatchObject({
    zoneId: ZONE,
    timestamp: first?.occurredAt,
    fields: { url: first?.url },
  });
  const hours = await world.hours();
  expect(
    hours.every(({ arrival, stored, acknowledged }) => arrival === "arrived" && stored === acknowledged),
  ).toBe(true);
  expect(hours.reduce((sum, { stored }) => sum + stored, 0)).toBe(events.length);
  const repeated = receiver.repeated();
  expect(await world.run()).toBe("nothing is to be forwarded");
  expect(receiver.repeated()).toBe(repeated);
});

test("an event that arrives late and one whose values change follow, and nothing else is sent again", async () => {
  await world.store([event(5, "a", { country: null }), event(6, "b")]);
  await world.run();
  await storeEvents(database, ZONE, [event(5, "late"), event(5, "a", { country: "NL" })], {
    expectNew: false,
  });
  await rollUp(database);
  const repeated = receiver.repeated();
  await world.run();
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} a`, `${ZONE} b`, `${ZONE} late`]);
  expect(receiver.stored.get(`${ZONE} a`)).toContain('"country":"NL"');
  expect(receiver.repeated() - repeated).toBe(1);
  expect(await world.hours()).toMatchObject([{ hour: "00", arrival: "arrived", stored: 3, acknowledged: 3 }]);
});

test("the first acknowledged batch is noted at once, while the run goes on", async () => {
  await world.store([event(5, "a"), event(6, "b")]);
  const read = () =>
    pool
      .query("select acknowledged_at is not null as noted from forward_destinations")
      .then(({ rows }) => rows);
  const seen: unknown[] = [];
  for (let batch = 0; batch < 2; batch++)
    receiver.next.push((_lines, response, store) => {
      store();
      void read().then((rows) => (seen.push(...rows), response.writeHead(204).end()));
    });
  await world.run({ batchEvents: 1 });
  expect(seen).toEqual([{ noted: false }, { noted: true }]);
});

test("a minute is forwarded when it is over", async () => {
  world.setNow(DAY_START);
  await world.run({ startAgoMs: 0 });
  await world.store([event(5, "a")], { isSealed: false });
  world.setNow(DAY_START + 6 * MINUTE_MS);
  await world.run({ startAgoMs: 0 });
  expect(receiver.stored.size).toBe(0);
  world.setNow(DAY_START + 6 * MINUTE_MS + 5_000);
  await world.run({ startAgoMs: 0 });
  expect(receiver.stored.size).toBe(1);
  expect(await world.hours()).toMatchObject([{ arrival: "open", acknowledged: 1 }]);
});

test("with start now, events of earlier hours are not forwarded, even if they are copied later", async () => {
  await world.store([event(5, "old")]);
  world.setNow(DAY_START + 61 * MINUTE_MS);
  await world.run({ startAgoMs: 0 });
  await world.store([event(7, "copied later"), event(62, "new")]);
  world.setNow(DAY_START + 30 * HOUR_MS);
  await world.run({ startAgoMs: 0 });
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} new`]);
});

test("a run that loses its lease between the answer and its receipt sends the batch again, and loses nothing", async () => {
  await world.store([event(5, "a"), event(6, "b")]);
  receiver.next.push((_lines, response, store) => {
    store();
    // Another process takes over, as after a pause of this one.
    void pool
      .query("update leases set fence = fence + 1, holder = 'other' where name = 'forward-events.siem'")
      .then(() => response.writeHead(204).end());
  });
  await expect(world.run()).rejects.toThrow("lease");
  expect(await world.hours()).toMatchObject([{ acknowledged: 0 }]);
  await pool.query("update leases set holder = null, expires_at = null where name = 'forward-events.siem'");
  await world.run();
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", stored: 2, acknowledged: 2 }]);
});

test("while one process forwards to a destination, another does nothing", async () => {
  await world.store([event(5, "a")]);
  await world.whileLeased(async () =>
    expect(await world.run()).toBe("another run of this job is in progress"),
  );
  expect(receiver.stored.size).toBe(0);
});

test("an event that the receiver refuses is listed with its reason, and does not stop the others", async () => {
  await world.store(["a", "bad", "c"].map((logId) => event(5, logId)));
  const refuse: (typeof receiver.next)[number] = (lines, response, store) => {
    if (lines.some((line) => line.includes('"bad"')))
      response.writeHead(400).end("field ip: 203.0.113.7 is no address");
    else {
      store();
      response.writeHead(204).end();
    }
  };
  // All three, the first, the other two, and each of those.
  receiver.next.push(refuse, refuse, refuse, refuse, refuse);
  await world.run();
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} a`, `${ZONE} c`]);
  const { rows } = await pool.query("select log_id, reason from forward_refusals");
  expect(rows).toEqual([{ log_id: "bad", reason: expect.stringContaining("203.0.113.*") }]);
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", stored: 3, acknowledged: 2 }]);
  // With other values it is sent again by itself.
  await storeEvents(database, ZONE, [event(5, "bad", { country: "NL" })], { expectNew: false });
  await rollUp(database);
  await world.run();
  expect(receiver.stored.size).toBe(3);
  expect((await pool.query("select from forward_refusals")).rowCount).toBe(0);
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", stored: 3, acknowledged: 3 }]);
});

test("a receiver that refuses most events counts as wrongly set up: they wait and arrive once it is corrected", async () => {
  const events = Array.from({ length: 12 }, (_, index) => event(5, `e${index}`));
  await world.store(events);
  const refuse: (typeof receiver.next)[number] = (_lines, response) =>
    response.writeHead(400).end("no such index");
  receiver.next.push(...Array.from({ length: 23 }, () => refuse));
  await world.run();
  expect((await pool.query("select from forward_refusals")).rowCount).toBe(0);
  const { rows } = await pool.query("select is_refused, last_error from forward_destinations");
  expect(rows).toEqual([{ is_refused: true, last_error: expect.stringContaining("no such index") }]);
  await makeDueNow();
  await world.run();
  expect(receiver.stored.size).toBe(12);
});

test("an address that a receiver quotes in its refusal is masked in the destination's last error", async () => {
  await world.store(Array.from({ length: 120 }, (_, index) => event(5, `e${index}`)));
  const refuse: (typeof receiver.next)[number] = (_lines, response) =>
    response.writeHead(400).end("no address: 203.0.113.7\nand more");
  receiver.next.push(...Array.from({ length: 100 }, () => refuse));
  await world.run();
  const { rows } = await pool.query<{ last_error: string }>("select last_error from forward_destinations");
  expect(rows).toEqual([{ last_error: expect.stringContaining("no address: 203.0.113.* and more") }]);
});

test("a failing receiver is left alone for a while, and then gets everything", async () => {
  await world.store([event(5, "a"), event(65, "b")]);
  receiver.next.push((_lines, response) => response.writeHead(401).end());
  await world.run();
  expect(await world.run()).toContain("the destination is left alone for another");
  const { rows } = await pool.query("select failures, is_refused, last_error from forward_destinations");
  expect(rows).toMatchObject([{ failures: 1, is_refused: true, last_error: expect.stringContaining("401") }]);
  await pool.query("update forward_destinations set retry_at = now()");
  await world.run();
  expect(receiver.stored.size).toBe(2);
  const after = await pool.query("select failures, last_error, failing_since from forward_destinations");
  expect(after.rows).toEqual([{ failures: 0, last_error: null, failing_since: null }]);
});

test("a receiver that fails now and then but accepts events works, each hour arrives when it is sent, and its backlog ends", async () => {
  await world.store(Array.from({ length: 12 }, (_, hour) => event(60 * hour + 5, `e${hour}`)));
  const accept: (typeof receiver.next)[number] = (_lines, response, store) => {
    store();
    response.writeHead(204).end();
  };
  const fail: (typeof receiver.next)[number] = (_lines, response) => response.writeHead(503).end();
  receiver.next.push(fail);
  await world.run();
  const read = async () => {
    const { rows } = await pool.query(
      "select failures, acknowledged_at > now() - interval '1 minute' as works, failing_since > acknowledged_at as fails from forward_destinations",
    );
    return rows[0];
  };
  expect(await read()).toEqual({ failures: 1, works: null, fails: null });
  for (let run = 1; run <= 5; run++) {
    receiver.next.push(accept, accept, fail);
    await pool.query("update forward_destinations set retry_at = now()");
    await world.run();
    expect(await read()).toEqual({ failures: 1, works: true, fails: true });
    const arrived = (await world.hours()).filter(({ arrival }) => arrival === "arrived");
    expect(arrived).toHaveLength(2 * run);
  }
  await pool.query("update forward_destinations set retry_at = now()");
  await world.run();
  expect(await read()).toEqual({ failures: 0, works: true, fails: null });
  expect(receiver.stored.size).toBe(12);
});

test("days of the archive that Postgres no longer has are forwarded with their records", async () => {
  const events = hostileEvents();
  await world.store(events);
  await writeDay({ ...world, now: () => NOW } as never, { zoneId: ZONE, day: DAY });
  await pool.query("truncate waf_events, raw_blocks");
  await world.run({ format: "raw", batchEvents: 7 });
  expect(receiver.stored.size).toBe(new Set(events.map(({ logId }) => logId)).size);
  const hours = await world.hours();
  expect(hours.every(({ arrival }) => arrival === "arrived")).toBe(true);
  expect(hours.reduce((sum, { acknowledged }) => sum + acknowledged, 0)).toBe(events.length);
});

test("only the zones and events that the destination asks for are forwarded, and its hours count those alone", async () => {
  const other = 102;
  await world.store([event(5, "a", { action: "block" }), event(6, "b", { action: "log" })]);
  await world.store([event(5, "c", { action: "block" })], { zoneId: other });
  const where = [{ field: "action", op: "eq", value: ["block"] }] as const;
  await world.run({ where, zones: [ZONE] }, [ZONE, other]);
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} a`]);
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", stored: 1, acknowledged: 1 }]);
});

test("a raw event waits for its record until its hour is decided", async () => {
  const hasRecord = ({ logId }: { logId: string }) => logId === "a";
  await world.store([event(5, "a"), event(6, "b")], { hasRecord, isSealed: false });
  await world.run({ format: "raw" });
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} a`]);
  expect(await world.hours()).toMatchObject([{ arrival: "open", acknowledged: 1 }]);
  await pool.query("update coverage_windows set state = 'sealed', sealed_at = now(), evidence = '{}'");
  await pool.query("update forward_hours set look_at = now()");
  await world.run({ format: "raw" });
  expect(receiver.stored.size).toBe(2);
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", stored: 2, acknowledged: 2 }]);
});

test("an event that only the list has shown waits for its address, at most until its hour is decided", async () => {
  const repeated = receiver.repeated();
  const listed = event(5, "a", { route: "list", feature: null, ip: "203.0.113.*" });
  await world.store([listed, event(6, "b", { route: "list", feature: null })], { isSealed: false });
  await world.run();
  expect(receiver.stored.size).toBe(0);
  await storeEvents(database, ZONE, [event(5, "a", { feature: "waf", ip: "203.0.113.7" })], {
    expectNew: false,
  });
  await rollUp(database);
  await world.run();
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} a`]);
  expect(receiver.stored.get(`${ZONE} a`)).toContain("203.0.113.7");
  await pool.query("update coverage_windows set state = 'gap', gap_reason = 'test'");
  await pool.query("update forward_hours set look_at = now()");
  await world.run();
  expect([...receiver.stored.keys()]).toEqual([`${ZONE} a`, `${ZONE} b`]);
  expect(receiver.repeated()).toBe(repeated);
});

test("an hour that has lost an event since it was sent has arrived, and one that lacks some without a reason differs", async () => {
  await world.store([event(5, "a"), event(6, "b"), event(65, "c")]);
  await world.run();
  await pool.query("delete from waf_events where log_id = 'a'");
  await pool.query("update coverage_windows set stored_count = stored_count - 1 where stored_count = 2");
  // A count that no stored event explains.
  await pool.query("update coverage_windows set stored_count = 5 where stored_count = 1 and starts_at > $1", [
    new Date(DAY_START),
  ]);
  await pool.query("update forward_hours set arrival = 'open'");
  for (let run = 0; run < 3; run += 1) await world.run();
  expect(await world.hours()).toMatchObject([
    { hour: "00", arrival: "arrived", stored: 1, acknowledged: 1 },
    { hour: "01", arrival: "differs", stored: 5, acknowledged: 1 },
  ]);
});

test("with start all, hours whose events are past retention are left out", async () => {
  await world.store([event(5, "a")]);
  world.setNow(DAY_START + 402 * 24 * HOUR_MS);
  expect(await world.run()).toBe("nothing is to be forwarded");
  expect(await world.hours()).toEqual([]);
});

test("a destination that was down for a week gets everything, and costs no row until then", async () => {
  const days = Array.from({ length: 7 }, (_, day) => event(day * 24 * 60 + 5, `day ${day}`));
  for (const [day, one] of days.entries()) {
    await world.store([one]);
    world.setNow(DAY_START + (day + 1) * 24 * HOUR_MS);
    receiver.next.push((_lines, response) => response.writeHead(503).end());
    await world.run();
    await pool.query("update forward_destinations set retry_at = null");
  }
  const { rows } = await pool.query(
    "select failures, (select count(*) from forward_receipts)::integer as receipts from forward_destinations",
  );
  expect(rows).toEqual([{ failures: 7, receipts: 0 }]);
  // The oldest days are in the archive by now, and no longer in Postgres.
  await writeDay({ ...world, now: () => NOW } as never, { zoneId: ZONE, day: DAY });
  await pool.query("delete from waf_events where occurred_at < $1", [new Date(DAY_START + 24 * HOUR_MS)]);
  await world.run();
  expect([...receiver.stored.keys()].sort()).toEqual(days.map(({ logId }) => `${ZONE} ${logId}`));
  const hours = await world.hours();
  expect(hours).toHaveLength(7);
  expect(hours.every(({ arrival }) => arrival === "arrived")).toBe(true);
});

test("an hour of which the receiver counts fewer events is sent again once, and then differs", async () => {
  const elastic = await POSTING.elastic.receive();
  onTestFinished(() => elastic.stop());
  const destination = { kind: "elastic", sink: POSTING.elastic.open(elastic.origin) } as const;
  const run = async () => {
    await world.run(destination);
    // Time passes, so that the receiver has refreshed its index.
    await pool.query("update forward_hours set acknowledged_at = acknowledged_at - interval '1 minute'");
  };
  const lose = () => (elastic.stored as Map<string, unknown>).delete(`${ZONE}-a`);
  await world.store([event(5, "a"), event(6, "b")]);
  await run();
  await run();
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", acknowledged: 2, counted: 2 }]);
  lose();
  await pool.query("update forward_hours set arrival = 'open'");
  for (let times = 0; times < 3; times += 1) await run();
  expect(elastic.stored.size).toBe(2);
  expect(await world.hours()).toMatchObject([{ arrival: "arrived", acknowledged: 2, counted: 2 }]);
  lose();
  await pool.query("update forward_hours set arrival = 'open'");
  for (let times = 0; times < 3; times += 1) await run();
  expect(elastic.stored.size).toBe(1);
  expect(await world.hours()).toMatchObject([{ arrival: "differs", counted: 1 }]);
});

test("the receipts of an hour go when it has arrived and can no longer change", async () => {
  await world.store([event(5, "a")]);
  world.setNow(DAY_START + 2 * HOUR_MS);
  await world.run();
  expect((await pool.query("select from forward_receipts")).rowCount).toBe(1);
  world.setNow(DAY_START + 97 * HOUR_MS);
  await world.run();
  expect((await pool.query("select from forward_receipts")).rowCount).toBe(0);
  // A minute that is counted anew, for example after an erasure, sends nothing again.
  await pool.query(
    "insert into changed_minutes (zone_id, minute) select zone_id, starts_at from forward_hours on conflict (zone_id, minute) do update set seq = excluded.seq",
  );
  const repeated = receiver.repeated();
  await world.run();
  expect(receiver.repeated()).toBe(repeated);
});

async function openElastic() {
  const elastic = await POSTING.elastic.receive();
  onTestFinished(() => elastic.stop());
  return { elastic, sink: POSTING.elastic.open(elastic.origin) };
}

const minutesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => event(index % 60, `e${index}`));

test("events that a receiver postpones now and then are sent again within the run, and the other batches go on", async () => {
  const { elastic, sink } = await openElastic();
  await world.store(minutesOf(400));
  const seen = new Set<string>();
  elastic.fail((ids) => {
    // One of a hundred, at its first two attempts.
    const late = ids.filter((id) => id.endsWith("7") && id.length > 6 && !seen.has(`${id} twice`));
    for (const id of late) seen.add(seen.has(id) ? `${id} twice` : id);
    return { is: "partial", postponed: late };
  });
  await world.run({ sink, batchEvents: 50 });
  expect(elastic.stored.size).toBe(400);
  expect(world.pauses).toEqual([1_000, 2_000]);
  const { rows } = await pool.query("select failures, last_error from forward_destinations");
  expect(rows).toEqual([{ failures: 0, last_error: null }]);
  expect(await world.hours()).toMatchObject([{ acknowledged: 400 }]);
});

test("an event that stays postponed ends the run after three pauses, and the other events are acknowledged", async () => {
  const { elastic, sink } = await openElastic();
  await world.store(minutesOf(100));
  elastic.fail((ids) => ({ is: "partial", postponed: ids.filter((id) => id.endsWith("-e7")) }));
  await world.run({ sink, batchEvents: 50 });
  expect(world.pauses).toEqual([1_000, 2_000, 4_000]);
  expect(elastic.stored.size).toBe(99);
  const { rows } = await pool.query("select last_error from forward_destinations");
  expect(rows).toEqual([{ last_error: expect.stringContaining("postponed 1 of 1 events") }]);
});

test("a batch of which most is postponed is not followed by another one before the pause", async () => {
  const { elastic, sink } = await openElastic();
  await world.store(minutesOf(100));
  const sizes: number[] = [];
  elastic.fail((ids) => {
    sizes.push(ids.length);
    return sizes.length > 1 ? null : { is: "partial", postponed: ids.slice(1) };
  });
  await world.run({ sink, batchEvents: 50 });
  expect([sizes, world.pauses]).toEqual([[50, 50, 49], [1_000]]);
  expect(elastic.stored.size).toBe(100);
});

test("ten bad events of a batch stop neither the good ones of the batch nor later batches, and are listed", async () => {
  const { elastic, sink } = await openElastic();
  await world.store([
    ...minutesOf(12),
    ...Array.from({ length: 100 }, (_, index) => event(70, `good${index}`)),
  ]);
  elastic.fail((ids) => ({
    is: "partial",
    refused: ids.filter((id) => /-e\d+$/.test(id) && !id.endsWith("-e3")),
  }));
  await world.run({ sink });
  expect(elastic.stored.size).toBe(101);
  const failures = async () => (await pool.query("select failures from forward_destinations")).rows;
  expect(await failures()).toEqual([{ failures: 0 }]);
  expect((await pool.query("select from forward_refusals")).rowCount).toBe(0);
  // Now it is known that the destination accepts other events.
  await makeDueNow();
  await world.run({ sink });
  expect((await pool.query("select from forward_refusals")).rowCount).toBe(11);
  expect(await failures()).toEqual([{ failures: 0 }]);
});

test("a destination that refuses everything ends the run after three batches, and no event is listed", async () => {
  const { elastic, sink } = await openElastic();
  await world.store(Array.from({ length: 200 }, (_, index) => event(5 + 60 * (index % 5), `e${index}`)));
  let batches = 0;
  elastic.fail((ids) => {
    batches += 1;
    return { is: "partial", refused: ids };
  });
  await world.run({ sink });
  expect(batches).toBe(3);
  const { rows } = await pool.query("select is_refused, last_error from forward_destinations");
  expect(rows).toEqual([
    { is_refused: true, last_error: expect.stringContaining("refused 120 of 120 events") },
  ]);
  expect((await pool.query("select from forward_refusals")).rowCount).toBe(0);
});
