import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { DAY_START, ZONE } from "../../archive/files/archive-world.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { rollUp } from "../../people/erasure-world.ts";
import type { Fault } from "../../support/receivers/receiver.ts";
import { startWebhookReceiver } from "../../support/receivers/webhook-receiver.ts";
import { draws } from "../../support/sample.ts";
import { POSTING, type PostingKind, SIGNING_SECRET } from "../sinks/world.ts";
import { openForwardWorld } from "./forward-world.ts";

const world = await openForwardWorld();
const { database } = world;
const { pool } = database;
const HOURS = 6;
/** Faults of each receiver. */
const FAULTS = Number(process.env["TEST_FAULTS"] ?? draws(10, 20));
const SEED = Number(process.env["TEST_SEED"] ?? 7);

function createDraw(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

test.each(Object.keys(POSTING) as PostingKind[])(
  "after any faults between it and %s, no event is lost, none is there twice by id, and every hour has arrived",
  async (kind) => {
    await pool.query(`truncate waf_events, raw_blocks, rule_buckets, dirty_buckets, coverage_windows, archive_files,
      changed_minutes, forward_cursors, forward_destinations, forward_hours, forward_receipts, forward_refusals cascade`);
    const draw = createDraw(SEED);
    const receiver = await receive(kind);
    const sink = POSTING[kind].open(receiver.origin, { timeoutMs: 400 });
    world.setNow(DAY_START + 30 * HOUR_MS);
    let count = 0;
    const drawSome = (number: number) =>
      Array.from({ length: number }, () => {
        count += 1;
        return makeEvent({
          occurredAt: DAY_START + draw(HOURS * 60) * MINUTE_MS,
          logId: `e${count}`,
          feature: "waf",
        });
      });
    const events = drawSome(FAULTS * 6);
    await world.store(events);
    const faults = new Map<string, number>();
    let stop = new AbortController();
    receiver.fail((ids) => {
      if (total(faults) >= FAULTS) return null;
      const fault = drawFault(ids, draw);
      // Whoever answers a webhook with 200 says that it has stored the events.
      if (fault === null || (kind === "webhook" && fault.is === "foreign-answer")) return null;
      const name = fault.is === "status" ? String(fault.status) : fault.is;
      faults.set(name, (faults.get(name) ?? 0) + 1);
      if (fault.is === "stop") stop.abort(new Error("stopped"));
      else if (fault.is === "kill") void receiver.restart();
      else return fault;
      return { is: fault.is === "stop" ? "cut-after" : "cut-before" };
    });
    const isDone = async () => {
      const { rows } = await pool.query(
        "select count(*)::integer as open from forward_hours where arrival <> 'arrived'",
      );
      return rows[0].open === 0 && receiver.stored.size === events.length;
    };
    for (let round = 0; round === 0 || !(await isDone()); round += 1) {
      expect(round).toBeLessThan(FAULTS * 4);
      if (round % 9 === 5 && events.length < FAULTS * 7) {
        const late = drawSome(12);
        await storeEvents(database, ZONE, late, { expectNew: false });
        events.push(...late);
        await rollUp(database);
      }
      stop = new AbortController();
      await world.run({ sink, batchEvents: 10 }, [ZONE], stop.signal).catch((thrown: unknown) => {
        if (!stop.signal.aborted) throw thrown;
      });
      await pool.query("update forward_destinations set retry_at = null");
      // Time passes, so that a receiver that counts has refreshed its index.
      await pool.query("update forward_hours set acknowledged_at = acknowledged_at - interval '1 minute'");
    }
    expect([...receiver.stored.keys()].sort()).toEqual(events.map(({ logId }) => `${ZONE}-${logId}`).sort());
    const hours = await world.hours();
    expect(
      hours.every(({ arrival, stored, acknowledged }) => arrival === "arrived" && stored === acknowledged),
    ).toBe(true);
    expect(hours.reduce((sum, { stored }) => sum + stored, 0)).toBe(events.length);
    expect(total(faults)).toBe(FAULTS);
    expect(faults.size).toBeGreaterThan(4);
    await receiver.stop();
  },
  60_000 + 2_000 * FAULTS,
);

function receive(kind: PostingKind) {
  if (kind !== "webhook") return POSTING[kind].receive();
  const idOf = (body: unknown) => {
    const { zoneId, logId } = body as { zoneId: number; logId: string };
    return `${zoneId}-${logId}`;
  };
  return startWebhookReceiver({ secret: SIGNING_SECRET, idOf });
}

/** stop: the service ends. kill: the receiver is killed and starts again. */
type Drawn = Fault | { readonly is: "stop" } | { readonly is: "kill" };

function total(faults: ReadonlyMap<string, number>): number {
  return [...faults.values()].reduce((sum, times) => sum + times, 0);
}

function drawFault(ids: readonly string[], draw: (below: number) => number): Drawn | null {
  const some = () => ids.filter(() => draw(3) === 0);
  const kinds: (() => Drawn | null)[] = [
    () => null,
    () => ({ is: "stop" }),
    () => ({ is: "kill" }),
    () => ({ is: "cut-before" }),
    () => ({ is: "cut-after" }),
    () => ({ is: "slow", ms: 30 }),
    () => ({ is: "slow", ms: 700 }),
    () => ({ is: "foreign-answer" }),
    () => ({ is: "partial", postponed: some() }),
    () => ({ is: "status", status: 429, retryAfter: "1" }),
    () => ({ is: "status", status: 503 }),
    () => ({ is: "status", status: 500 }),
    () => ({ is: "status", status: 401 }),
  ];
  return kinds[draw(kinds.length)]?.() ?? null;
}
