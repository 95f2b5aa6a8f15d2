import { beforeEach, expect, test } from "vitest";
import { countOnPath, listExclusions, storeProposal, watchExclusions } from "#db/detection/exclusions.ts";
import { deleteExpired } from "#db/people/retention.ts";
import { rewriteDerived } from "#db/people/rewrite-derived.ts";
import { toUrlPattern } from "#detection/rules/exclusion/write-forms.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS, createActionStates } from "#model/action-class.ts";
import type { ExclusionProposal } from "#model/advice.ts";
import { toDay } from "#model/horizon.ts";
import type { MigratedDatabase } from "../../db/migrated-database.ts";
import { rollUp } from "../../people/erasure-world.ts";
import { makeEvent, openTrendDatabase, storeAll, ZONE } from "../trend-support.ts";

const RULE = "942440";
const NOW = Date.UTC(2026, 10, 20, 3);
const CLAUSE = { ruleIds: [RULE], template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" };
const PROPOSAL: ExclusionProposal = {
  form: "narrow",
  ruleId: RULE,
  clauses: [CLAUSE],
  covered: 1,
  events: 100,
  together: [],
  refusal: null,
};
let database: MigratedDatabase;
let logId = 0;

beforeEach(async () => {
  database = await openTrendDatabase([0, 1, 2, 3].map((days) => toDay(NOW - days * DAY_MS)));
});

const propose = (proposal = PROPOSAL, now = NOW - 2 * DAY_MS) =>
  storeProposal(database.db, { zoneId: ZONE, spikeId: null, proposal, now });
const watch = (actions = BUILT_IN_ACTIONS) =>
  watchExclusions(database.db, ZONE, { nowMs: NOW, toUrlPattern, actions });
const list = () => listExclusions(database.db, [ZONE], 10);

interface Stored {
  readonly path?: string;
  readonly ruleId?: string;
  readonly action?: string;
  /** Hours before now of the oldest and of the newest event. */
  readonly from: number;
  readonly to: number;
  readonly ip?: string;
}

/** Stores an event per half hour. */
async function store({
  path = "/reviews/1",
  ruleId = RULE,
  action = "block",
  from,
  to,
  ip = "203.0.113.1",
}: Stored) {
  const events = Array.from({ length: (from - to) * 2 }, (_, index) => {
    const occurredAt = NOW - from * HOUR_MS + index * 30 * 60_000 + 1;
    logId += 1;
    return makeEvent({
      logId: `x${logId}`,
      occurredAt,
      ruleId,
      action,
      ip,
      url: `https://shop.example.test${path}`,
    });
  });
  await storeAll(database, events);
  await rollUp(database);
  return events.at(-1)?.occurredAt ?? 0;
}

const others = () => store({ path: "/login", ruleId: "941100", from: 70, to: 0 });

test("a rule that fell silent on its path was followed at its last event", async () => {
  await propose();
  await others();
  const last = await store({ from: 70, to: 25 });
  expect(await watch()).toBe(1);
  expect(await list()).toMatchObject([{ clause: CLAUSE, followedAt: last, zoneId: ZONE }]);
  expect(await watch()).toBe(0);
});

test("a rule that only logs now was followed, because it stops nothing any more", async () => {
  await propose();
  await others();
  const last = await store({ from: 70, to: 26 });
  await store({ action: "log", from: 26, to: 0 });
  expect(await watch()).toBe(1);
  expect(await list()).toMatchObject([{ followedAt: last }]);
});

test("the words of the configuration say what a rule stops", async () => {
  await propose();
  await others();
  await store({ action: "Tar-Pit", from: 70, to: 26 });
  await store({ action: "it's a trap", from: 26, to: 0 });
  expect(await watch()).toBe(0);
  expect(await watch(createActionStates({ stopped: ["tarpit", "It's a trap"], through: [] }))).toBe(0);
  expect(await watch(createActionStates({ stopped: ["tarpit"], through: ["It's a trap"] }))).toBe(1);
});

test.each<[why: string, quiet: Stored, more: Stored | null, hasOthers: boolean]>([
  ["it still matches on the path", { from: 70, to: 0 }, null, true],
  ["its last event is less than 24 hours old", { from: 70, to: 23 }, null, true],
  ["there were too few events before", { from: 33, to: 25 }, null, true],
  ["the zone has no other events", { from: 70, to: 25 }, null, false],
  [
    "the zone's other events stopped as well",
    { from: 70, to: 25 },
    { path: "/login", ruleId: "941100", from: 70, to: 25 },
    false,
  ],
  ["it never matched on the path", { path: "/reviews/x", from: 70, to: 25 }, null, true],
])("a proposal was not followed if %s", async (_, quiet, more, hasOthers) => {
  await propose();
  if (hasOthers) await others();
  await store(quiet);
  if (more !== null) await store(more);
  expect(await watch()).toBe(0);
});

test("a proposal that is a day old at most is not judged, and a new one is watched anew", async () => {
  await others();
  await store({ from: 70, to: 25 });
  await propose(PROPOSAL, NOW - DAY_MS / 2);
  expect(await watch()).toBe(0);
  await propose();
  expect(await watch()).toBe(1);
  await propose(PROPOSAL, NOW);
  expect(await list()).toMatchObject([{ proposedAt: NOW, followedAt: null }]);
});

test("each clause is one row, however often it is proposed", async () => {
  const two = { ...PROPOSAL, clauses: [CLAUSE, { ...CLAUSE, parameter: "ARGS:body" }] };
  await propose(two);
  await propose(two);
  await propose({ ...PROPOSAL, form: "refused", clauses: [], refusal: "no" });
  const parameters = (await list()).map(({ clause }) => clause.parameter);
  expect(new Set(parameters)).toEqual(new Set(["ARGS:body", "ARGS:title"]));
  expect(parameters).toHaveLength(2);
  expect(await listExclusions(database.db, [102], 10)).toEqual([]);
});

test("events of other rules on the path count as what an exclusion lets through", async () => {
  await store({ from: 70, to: 0 });
  await store({ ruleId: "941100", from: 10, to: 0 });
  await store({ ruleId: "932100", ip: "198.51.100.1", from: 5, to: 0 });
  for (const ruleId of ["930100", "930110", "913100"])
    await store({ path: "/login", ruleId, ip: "198.51.100.1", from: 2, to: 0 });
  await store({ ruleId: "941100", from: 60, to: 40 });
  const counted = await countOnPath(
    database.db,
    { zoneId: ZONE, clause: CLAUSE },
    { nowMs: NOW, toUrlPattern },
  );
  expect(counted).toEqual({ events: 30, suspicious: 10 });
});

test("retention deletes old proposals and keeps those that were followed", async () => {
  await others();
  await store({ from: 70, to: 25 });
  await propose();
  await watch();
  await propose({ ...PROPOSAL, clauses: [{ ...CLAUSE, parameter: "ARGS:body" }] });
  const from = NOW - DAY_MS;
  const kept = { rawFrom: 0, eventsFrom: 0, rollUpsFrom: from, minutesFrom: 0, addressesFrom: 0 };
  expect(await deleteExpired(database.db, { ...kept, rollUpsFrom: 0 }, NOW)).toBe(0);
  await deleteExpired(database.db, kept, NOW);
  expect((await list()).map(({ clause }) => clause.parameter)).toEqual(["ARGS:title"]);
});

test("an erasure rewrites the texts of clauses", async () => {
  await propose({ ...PROPOSAL, clauses: [{ ...CLAUSE, template: "/from/198.51.100.7" }] });
  const json = (value: unknown) =>
    JSON.parse(JSON.stringify(value).replaceAll("198.51.100.7", "erased")) as unknown;
  await rewriteDerived(database, { zoneId: ZONE }, { json, text: (text) => text, write: true });
  expect(await list()).toMatchObject([{ clause: { template: "/from/erased" } }]);
});
