import { sql } from "drizzle-orm";
import pino from "pino";
import { beforeEach, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import { replicas } from "#db/schema/service.ts";
import { raiseSelfAlert } from "#jobs/alerts/raise-self.ts";
import { createReportServiceJob } from "#jobs/alerts/report-service.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { openAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf } from "./incident.ts";
import { NOW } from "./support.ts";

/** Minutes after NOW at which the zone has left for long. */
const LATER = 90;
const silent = pino({ level: "silent" });
const routing = () => routeToAll(["chat"]);
const { database, world } = await openAlertWorld();

beforeEach(async () => {
  await database.db.delete(replicas);
});

interface Seen {
  readonly zoneIds: readonly number[];
  readonly startedMinutesAgo: number;
  readonly seenMinutesAgo?: number;
}

/** A process of the service, as its signs of life tell of it. */
async function noteReplica(id: string, { zoneIds, startedMinutesAgo, seenMinutesAgo = 0 }: Seen) {
  const ago = (minutes: number) => sql<Date>`now() - ${minutes} * interval '1 minute'`;
  await database.db.insert(replicas).values({
    id,
    host: "h",
    pid: 1,
    version: "0.2.0",
    roles: ["alerts"],
    zoneIds: [...zoneIds],
    startedAt: ago(startedMinutesAgo),
    seenAt: ago(seenMinutesAgo),
  });
}

/** The job as a replica with the zone 101 runs it. */
function report(minutes = LATER) {
  const job = createReportServiceJob({
    database,
    log: silent,
    zoneIds: [101],
    routing,
    pollEveryMs: 30_000,
    clock: () => NOW + minutes * MINUTE_MS,
    afterAlerts: async () => undefined,
  });
  return job.run({} as never, new AbortController().signal);
}

const raise = (minutes: number) => world.runAt(minutes, { channels: ["chat"], zoneIds: [101, 102] });

/** An alert of each kind about zone 102, and one about zone 101. */
async function raiseAll(): Promise<void> {
  await world.openSpike(0);
  await world.openSpike(0, { zoneId: 102 });
  await world.openSpike(0, { zoneId: 102, ...incidentOf(attackerOf("203.0.113.7")) });
  await raise(20);
  const context = { routing: routing(), silences: [], nowMs: NOW };
  const routeOf = (subject: Parameters<typeof routeSelf>[1]) => routeSelf(context, subject);
  const headline = "Zone 102: events of 3 hours are lost";
  const news = { severity: "critical", headline, openedAtMs: NOW, reason: "first" } as const;
  const given = { about: "coverage", fingerprint: "gap-102", zoneId: 102, row: null, news, nowMs: NOW };
  await raiseSelfAlert({ database, log: silent, routeOf }, given);
}

async function readStates(): Promise<string[]> {
  const rows = await world.alerts();
  return rows.map(({ zoneId, kind, state }) => `${zoneId} ${kind} ${state}`).sort();
}

const OPEN = ["101 spike firing", "102 self firing", "102 sources firing", "102 spike firing"];
const ENDED = ["101 spike firing", "102 self resolved", "102 sources resolved", "102 spike resolved"];

test("alerts of a zone that no process has had for an hour end, and their history and messages say why", async () => {
  await raiseAll();
  expect(await readStates()).toEqual(OPEN);
  await noteReplica("left", { zoneIds: [101, 102], startedMinutesAgo: 600, seenMinutesAgo: 61 });
  await noteReplica("here", { zoneIds: [101], startedMinutesAgo: 61 });
  await report();

  expect(await readStates()).toEqual(ENDED);
  for (const { zoneId, transitions, resolvedAt } of await world.alerts()) {
    if (zoneId !== 102) continue;
    expect(resolvedAt).toEqual(new Date(NOW + LATER * MINUTE_MS));
    expect((transitions as object[]).at(-1)).toMatchObject({
      reason: "resolved",
      note: "zone 102 is no longer watched",
    });
  }
  const ends = (await world.messages()).filter(({ reason }) => reason === "resolved");
  expect(ends.map(({ channel, message }) => `${channel}: ${message.headline}`).sort()).toEqual([
    "chat: Resolved, because zone 102 is no longer watched: SQL injection: rule 942100 in zone 102",
    "chat: Resolved, because zone 102 is no longer watched: Zone 102: events of 3 hours are lost",
    "chat: Resolved, because zone 102 is no longer watched: incident in zone 102",
  ]);
  expect(ends.every(({ message }) => message.endedAt === NOW + LATER * MINUTE_MS)).toBe(true);
  const open = (await world.spikes()).filter(({ closedAt }) => closedAt === null);
  expect(open.map(({ zoneId }) => zoneId)).toEqual([101]);
});

test("runs that are repeated, or run at the same time, write each end once", async () => {
  await raiseAll();
  await noteReplica("left", { zoneIds: [102], startedMinutesAgo: 600, seenMinutesAgo: 90 });
  await noteReplica("here", { zoneIds: [101], startedMinutesAgo: 300 });
  await Promise.all([report(), report(), report()]);
  const [outbox, alerts] = [await world.outbox(), await world.alerts()];
  expect(outbox.filter((row) => row.includes("resolved"))).toHaveLength(3);
  await report();
  await raise(LATER + 1);
  await report(LATER + 2);
  const later = await world.outbox();
  expect(later.filter((row) => row.includes("resolved"))).toHaveLength(3);
  expect((await world.alerts()).filter(({ zoneId }) => zoneId === 102)).toEqual(
    alerts.filter(({ zoneId }) => zoneId === 102),
  );
});

test.each<[string, Readonly<Record<string, Seen>>]>([
  [
    "another replica has the zone",
    {
      here: { zoneIds: [101], startedMinutesAgo: 300 },
      other: { zoneIds: [101, 102], startedMinutesAgo: 5 },
    },
  ],
  [
    "the zone left less than an hour ago",
    {
      here: { zoneIds: [101], startedMinutesAgo: 300 },
      left: { zoneIds: [102], startedMinutesAgo: 600, seenMinutesAgo: 59 },
    },
  ],
  [
    "the zone came back within the hour",
    {
      here: { zoneIds: [101], startedMinutesAgo: 300 },
      left: { zoneIds: [102], startedMinutesAgo: 600, seenMinutesAgo: 120 },
      back: { zoneIds: [102], startedMinutesAgo: 65, seenMinutesAgo: 10 },
    },
  ],
  [
    "the service has just started after a long outage, and another replica has not yet",
    {
      here: { zoneIds: [101], startedMinutesAgo: 59 },
      old: { zoneIds: [101], startedMinutesAgo: 900, seenMinutesAgo: 300 },
      left: { zoneIds: [102], startedMinutesAgo: 900, seenMinutesAgo: 300 },
    },
  ],
])("no alert ends while %s", async (_, seen) => {
  await raiseAll();
  for (const [id, replica] of Object.entries(seen)) await noteReplica(id, replica);
  await report();
  expect(await readStates()).toEqual(OPEN);
  expect((await world.spikes()).every(({ closedAt }) => closedAt === null)).toBe(true);
});

test("a spike after the zone has come back is a new alert", async () => {
  await raiseAll();
  await noteReplica("here", { zoneIds: [101], startedMinutesAgo: 300 });
  await report();
  expect(await readStates()).toEqual(ENDED);
  await noteReplica("back", { zoneIds: [101, 102], startedMinutesAgo: 0 });
  const openedAt = LATER + (2 * HOUR_MS) / MINUTE_MS;
  await world.openSpike(openedAt, { zoneId: 102 });
  await raise(openedAt + 20);
  await report(openedAt + 21);
  expect(await readStates()).toEqual([...ENDED, "102 spike firing"].sort());
});

test("an alert that cannot be read stays, its spike stays open, and the other alerts end", async () => {
  await raiseAll();
  await database.db.execute(sql`update alerts set details = '{}' where kind = 'sources'`);
  await noteReplica("here", { zoneIds: [101], startedMinutesAgo: 300 });
  await report();
  expect(await readStates()).toEqual([
    "101 spike firing",
    "102 self resolved",
    "102 sources firing",
    "102 spike resolved",
  ]);
  expect((await world.spikes()).filter(({ closedAt }) => closedAt === null)).toHaveLength(2);
});
