import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFAULT_TIMING, type Routing } from "#alerts/rules/routing/routing.ts";
import { findSilence } from "#alerts/rules/silence.ts";
import { isNeedless } from "#db/delivery/drop-notifications.ts";
import { alerts, silences } from "#db/schema/alerts.ts";
import { channelStates, notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { ENDINGS } from "#model/words.ts";
import { Refusal } from "#operations/refusal.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { createDeliverWorld, type Receiver, startReceiver } from "../delivery/deliver-world.ts";
import { acknowledgeByHand, resolveAlert } from "../operations/act-by-hand.ts";
import { draws } from "../support/sample.ts";
import { createAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf, sourcesOf } from "./incident.ts";
import { insertSpike } from "./insert-spike.ts";
import { NOW } from "./support.ts";

const CHANNELS = ["chat", "pager"];
const RULES = ["1", "2", "3", SOURCES_RULE];
const SEVERITIES = ["warning", "error", "critical"] as const;
const RINGING: readonly string[] = ["first", "join", "again", "worse", "repeat"];
const ENDS: readonly string[] = ENDINGS;
const TIMING = { ...DEFAULT_TIMING, groupWaitMs: 0 };
const FOR_ALL = { matchers: {}, channels: CHANNELS, timing: TIMING, continue: false, routes: [] };
/** The pager is notified of errors and critical alerts. */
const ROUTING: Routing = {
  channels: CHANNELS,
  root: {
    ...FOR_ALL,
    channels: ["chat"],
    routes: [{ ...FOR_ALL, matchers: { severity: ["error", "critical"] } }],
  },
  links: [],
  inhibitions: [],
  quietHours: [],
  fewAddresses: 3,
};

const step = fc.record({
  minutes: fc.oneof(fc.constantFrom(0, 0.05, 1, 4), fc.integer({ min: 5, max: 40 })),
  act: fc.constantFrom(
    "open",
    "open",
    "close",
    "grade",
    "silence",
    "hush",
    "ack",
    "resolve",
    "fail",
    "fail",
    "mend",
  ),
  rules: fc.subarray(RULES, { minLength: 1 }),
  severity: fc.constantFrom(...SEVERITIES),
  channel: fc.constantFrom(...CHANNELS),
  status: fc.constantFrom(503, 429, 500),
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

let database: MigratedDatabase;
let receiver: Receiver;

beforeAll(async () => {
  database = await createMigratedDatabase();
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.close();
  await database.drop();
});

/** Everything that is done is done twice at the same time, as by two replicas. */
function createWorld() {
  const { db } = database;
  const raised = createAlertWorld(database);
  const delivered = createDeliverWorld(database, receiver);
  let minutes = 0;
  const at = (later = 0) => new Date(NOW + (minutes + later) * MINUTE_MS);
  const isOpen = sql`${spikes.closedAt} is null`;
  const among = (rules: readonly string[]) => sql`${spikes.ruleId} in ${[...rules]} and ${isOpen}`;
  const runTwice = async () => {
    const routing = () => ROUTING;
    await Promise.all([raised.runAt(minutes, { routing }), raised.runAt(minutes, { routing })]);
    // Pauses and back-off are tested elsewhere; here every message is due.
    await db.update(notifications).set({ nextAttemptAt: sql`now()` }).where(sql`state = 'pending'`);
    await db.delete(channelStates);
    await Promise.all([delivered.run(CHANNELS), delivered.run(CHANNELS)]);
  };
  return {
    async clear(): Promise<void> {
      await raised.clear();
      await delivered.clear();
    },
    runTwice,
    readSilences: async () =>
      (await db.select().from(silences)).map((row) => ({
        id: row.id,
        startsAtMs: row.startsAt.getTime(),
        expiresAtMs: row.expiresAt.getTime(),
        matchers: row.matchers as { rule: string[] },
      })),
    nowMs: () => at().getTime(),
    async act({ minutes: later, act, rules, severity, channel, status }: Step): Promise<void> {
      minutes += later;
      if (act === "open") {
        const open = new Set((await db.select().from(spikes).where(isOpen)).map(({ ruleId }) => ruleId));
        for (const ruleId of rules.filter((rule) => !open.has(rule)))
          await insertSpike(db, {
            openedAt: at(),
            ...(ruleId === SOURCES_RULE
              ? incidentOf(attackerOf("203.0.113.1", Math.floor(minutes)))
              : { ruleId }),
            severity,
          });
        // Each opening adds an address to the incident, and the first rule is one that its addresses trigger.
        const [incident] = await db
          .select()
          .from(spikes)
          .where(among([SOURCES_RULE]));
        if (incident === undefined) return;
        const findings = incident.sources?.findings ?? [];
        const joined = attackerOf(`203.0.113.${findings.length + 1}`, Math.floor(minutes));
        await db
          .update(spikes)
          .set({ sources: sourcesOf([...findings, joined]) })
          .where(among([SOURCES_RULE]));
        await db
          .update(spikes)
          .set({ memberOf: incident.id })
          .where(among(["1"]));
      }
      if (act === "close") await db.update(spikes).set({ closedAt: at() }).where(among(rules));
      if (act === "grade") await db.update(spikes).set({ severity }).where(among(rules));
      if (act === "silence") await raised.silence({ rule: rules }, minutes + 30);
      if (act === "hush") await db.delete(silences);
      if (act === "fail") receiver.status(channel, status);
      if (act === "mend") receiver.status(channel, 204);
      if (act !== "ack" && act !== "resolve") return;
      const change = act === "ack" ? acknowledgeByHand : resolveAlert;
      const concerned = (await raised.alerts()).filter(
        ({ ruleId }) => ruleId !== null && rules.includes(ruleId),
      );
      const person = { by: "alice", note: null, atMs: at().getTime() };
      for (const { id: alertId } of concerned)
        await Promise.all([
          change(database, { alertId, ...person }).catch(ignoreResolved),
          change(database, { alertId, ...person }).catch(ignoreResolved),
        ]);
    },
    /** Ends every failure and attack, and every mute. */
    async end(): Promise<void> {
      for (const channel of CHANNELS) receiver.status(channel, 204);
      await db.delete(silences);
      await runTwice();
      await db.update(spikes).set({ closedAt: at() }).where(isOpen);
      for (let count = 0; count < 2; count += 1) {
        await runTwice();
        minutes += 5 * 60;
      }
    },
    rows: () => db.select().from(notifications).orderBy(notifications.id),
    alerts: () => db.select().from(alerts).orderBy(alerts.id),
  };
}

type World = ReturnType<typeof createWorld>;

async function checkAlerts(world: World): Promise<void> {
  const rows = (await world.alerts()).filter(({ kind }) => kind !== "self");
  const open = rows.filter(({ state }) => state !== "resolved").map(({ fingerprint }) => fingerprint);
  expect(new Set(open).size).toBe(open.length);
  for (const { transition, transitions } of rows)
    expect((transitions as { transition: number }[]).map((entry) => entry.transition)).toEqual(
      Array.from({ length: transition }, (_, index) => index + 1),
    );
}

/** Checks that every message written since `from`, while its rule is silenced, is a resolve. */
async function checkSilence(world: World, from: number): Promise<void> {
  const inForce = await world.readSilences();
  const nowMs = world.nowMs();
  const open = (await database.db.select().from(spikes)).filter(({ closedAt }) => closedAt === null);
  for (const { reason, content } of (await world.rows()).slice(from)) {
    if (!RINGING.includes(reason) && reason !== "advice") continue;
    const { ruleId, kind } = content as { ruleId: string | null; kind: string };
    const spike = open.find((one) => one.ruleId === ruleId);
    if (kind === "self" || spike === undefined) continue;
    const { zoneId, severity } = spike;
    const silence = findSilence(inForce, { kind: "spike", zoneId, ruleId, severity }, nowMs);
    expect([reason, silence]).toEqual([reason, null]);
  }
}

/**
 * Checks the messages that the receivers accepted: in order, one message per key, and a resolve only after a firing.
 */
async function checkReceived(world: World): Promise<void> {
  const rows = await world.rows();
  expect(new Set(rows.map(({ dedupeKey }) => dedupeKey)).size).toBe(rows.length);
  expect(rows.filter(({ state }) => state === "pending" || state === "sending")).toEqual([]);
  // Nobody refuses anything here: what was not sent did not have to be.
  for (const { state, lastError } of rows)
    expect([lastError, state === "delivered" || isNeedless(lastError)]).toEqual([lastError, true]);
  const contents = new Map<string, string>();
  for (const { id, message } of receiver.received) {
    const said = JSON.stringify(message);
    expect(contents.get(id) ?? said).toBe(said);
    contents.set(id, said);
  }
  const taken = rows.filter(({ state, content }) => {
    return state === "delivered" && (content as { kind: string }).kind !== "self";
  });
  for (const row of taken) expect(contents.has(row.dedupeKey)).toBe(true);
  for (const lane of Map.groupBy(taken, ({ alertId, channel }) => `${alertId} ${channel}`).values()) {
    let isFiring = false;
    for (const { reason } of lane.toSorted((a, b) => a.transition - b.transition)) {
      expect([reason, isFiring || RINGING.includes(reason)]).toEqual([reason, true]);
      isFiring = !ENDS.includes(reason);
    }
    expect(isFiring).toBe(false);
  }
}

/** An alert that is resolved cannot be acknowledged. */
function ignoreResolved(thrown: unknown): void {
  if (!(thrown instanceof Refusal) || thrown.statusCode !== 409) throw thrown;
}

test("two replicas, failing receivers, people and silences: every page is ended once, and nothing is said twice or lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
      const world = createWorld();
      await world.clear();
      for (const next of steps) {
        await world.act(next);
        const before = (await world.rows()).length;
        await world.runTwice();
        await checkAlerts(world);
        await checkSilence(world, before);
      }
      await world.end();
      await checkAlerts(world);
      expect((await world.alerts()).filter(({ state }) => state !== "resolved")).toEqual([]);
      await checkReceived(world);
    }),
    { numRuns: draws(3, 12) },
  );
}, 120_000);
