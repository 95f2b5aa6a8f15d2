import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import { deleteReviewPlan, insertReviewPlan, listReviewPlans } from "#db/detection/exclusions.ts";
import { readRequests } from "#detection/review/open-review.ts";
import { raiseExamined } from "#jobs/alerts/raise-self.ts";
import { createWatchPlansJob } from "#jobs/detection/watch-plans.ts";
import { examine, openScope } from "#jobs/health/conditions/condition.ts";
import { COVERAGE_CONDITIONS } from "#jobs/health/conditions/coverage.ts";
import { HOUR_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { packFacts } from "#model/request-facts.ts";
import { findDrift, type SavedReview } from "#model/review.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { type ArchiveFolder, openFolder } from "../archive/archive-folder.ts";
import { openArchiveWorld } from "../archive/files/archive-world.ts";
import { silent } from "../ingest/ingest-support.ts";
import { makeEvent, runJob } from "./trend-support.ts";

/** The plan is saved at noon; the rules of the zone block from one o'clock on. */
const SAVED = Date.parse("2026-11-20T12:00:00Z");
const at = (hours: number) => SAVED + hours * HOUR_MS;
const NOTHING = { hasSession: false, hasOwnReferer: false, hasIdiom: false, isTool: false, hasBody: null };
const VISITOR = packFacts({ ...NOTHING, hasSession: true, hasOwnReferer: true });
const HOSTILE = packFacts({ ...NOTHING, hasIdiom: true });
const [SQL, XSS, RCE] = ["942100", "941100", "932100"];

const world = await openArchiveWorld();
const { database } = world;
let folder: ArchiveFolder;
beforeAll(async () => {
  folder = await openFolder();
});
afterAll(() => folder.close());
beforeEach(async () => {
  await database.pool.query("truncate review_plans, waf_events, alerts cascade");
});

let ids = 0;
interface Sent extends Partial<WafEvent> {
  readonly rules?: readonly string[];
}
/** The events of one request, one for each of its rules. */
function send(hours: number, { rules = [SQL], ...over }: Sent = {}): WafEvent[] {
  ids += 1;
  return rules.map((ruleId, place) =>
    makeEvent({
      occurredAt: at(hours) + (ids % 1_000),
      logId: `e${ids}-${place}`,
      requestId: `r${ids}`,
      ip: `198.51.100.${ids % 250}`,
      url: `https://shop.example.test/p${ids % 7}`,
      ua: "Mozilla/5.0 (X11) Chrome/140.0",
      action: "Blocked",
      feature: "waf",
      facts: HOSTILE,
      ...over,
      ruleId,
    }),
  );
}
const visit = (hours: number, over: Sent = {}) => send(hours, { facts: VISITOR, ...over });
const store = (events: readonly (readonly WafEvent[])[]) =>
  world.store(events.flat(), { hasRecord: () => false });
const times = <Made>(count: number, make: (index: number) => Made) =>
  Array.from({ length: count }, (_, i) => make(i));

const DAYS = { from: "2026-11-13", to: "2026-11-19", days: 7 };
const PLAN: SavedReview = {
  block: [SQL, XSS],
  log: [RCE],
  exclusions: [],
  learned: DAYS,
  judged: DAYS,
  promised: [
    { rule: SQL, visitors: 2, worst: 1 },
    { rule: XSS, visitors: 0, worst: 0 },
  ],
};

async function save(plan: Partial<SavedReview> = {}, hours = 0): Promise<number> {
  const row = { zoneId: 101, name: "Switch", note: "", createdBy: "alice", createdAt: new Date(at(hours)) };
  const saved = await insertReviewPlan(database.db, { ...row, plan: { ...PLAN, ...plan } }, 10);
  return saved?.id ?? 0;
}

const watchAt = (hours: number) =>
  runJob(
    createWatchPlansJob({
      database,
      readRequests: (...asked) => readRequests({ queries: database, files: folder.files }, ...asked),
      clock: () => at(hours),
      log: silent,
      zoneIds: [101],
      knownSources: () => [],
      actions: BUILT_IN_ACTIONS,
    }),
  );

/** Watches the plans and raises what is to be raised, and returns the alerts' transitions. */
async function reportAt(hours: number): Promise<string[]> {
  await watchAt(hours);
  const context = { routing: routeToAll(["chat"]), silences: [], nowMs: at(hours) };
  const conditions = COVERAGE_CONDITIONS.filter(({ name }) => name === "plan-hit");
  const examined = await examine(
    openScope({ db: database.db, nowMs: at(hours), zoneIds: [101] }),
    conditions,
  );
  const before = await messages();
  const routeOf = (subject: Parameters<typeof routeSelf>[1]) => routeSelf(context, subject);
  await raiseExamined({ database, log: pino({ level: "silent" }), routeOf }, examined);
  return (await messages()).slice(before.length);
}

async function messages(): Promise<string[]> {
  const { rows } = await database.pool.query<{ text: string }>(
    "select (content ->> 'reason') || ' ' || (content ->> 'headline') as text from notifications order by id",
  );
  return rows.map(({ text }) => text);
}

const readPlan = async (id: number) =>
  (await listReviewPlans(database.db, null)).find((one) => one.id === id) ?? null;

const stateOf = async (id: number) => {
  const row = await readPlan(id);
  const [followed, drift] = [row?.watch?.followedSince ?? null, findDrift(PLAN, row?.watch ?? null)];
  return { isFollowed: followed !== null, drift: drift.map(({ rule, blocks }) => [rule, blocks]) };
};

/** Attacks that both rules block, from one o'clock on. */
const attacks = (from = 1) => [
  ...times(12, (i) => send(from + i / 20, { rules: [SQL] })),
  ...times(12, (i) => send(from + i / 20, { rules: [XSS] })),
];

test("a plan is followed as soon as the rules that it blocks do block, and not by rules that still log", async () => {
  const id = await save();
  await store(times(12, () => send(0.5, { action: "Logged" })));
  await watchAt(0.9);
  expect(await stateOf(id)).toEqual({ isFollowed: false, drift: [] });
  // One of two rules is switched.
  await store([...times(12, (i) => send(1 + i / 60)), send(1.2, { rules: [XSS], action: "Logged" })]);
  await watchAt(2);
  expect(await stateOf(id)).toEqual({ isFollowed: false, drift: [] });
  await store(times(12, (i) => send(2 + i / 60, { rules: [XSS] })));
  await watchAt(3);
  expect(await stateOf(id)).toEqual({ isFollowed: true, drift: [] });
});

test("what rules did before the plan was saved is no proof, and neither is what others stopped of a rule that logs", async () => {
  const id = await save({}, 5);
  await store(attacks());
  await watchAt(6);
  expect(await stateOf(id)).toEqual({ isFollowed: false, drift: [] });
  await store([
    ...times(5, (i) => send(6 + i / 60, { rules: [SQL, XSS] })),
    ...times(5, (i) => send(6.2 + i / 60, { action: "Logged" })),
  ]);
  await watchAt(7);
  expect(await stateOf(id)).toEqual({ isFollowed: false, drift: [] });
});

test("rules that match nothing alone are followed if their requests are stopped, and one that is to log does not drift", async () => {
  const id = await save();
  await store(times(5, (i) => send(1 + i / 60, { rules: [RCE], action: "Logged" })));
  await store(times(12, (i) => send(2 + i / 60, { rules: [SQL, XSS, RCE] })));
  await watchAt(3);
  expect(await stateOf(id)).toEqual({ isFollowed: true, drift: [] });

  await store(times(5, (i) => send(4 + i / 60, { action: "Logged" })));
  await watchAt(5);
  await store(times(5, (i) => send(30 + i / 60, { rules: [SQL, XSS] })));
  await watchAt(31);
  expect(await stateOf(id)).toEqual({ isFollowed: true, drift: [[SQL, false]] });
});

test("a partner whose requests are blocked for hours is an alert, although it is one visitor", async () => {
  await save();
  await store(attacks());
  await watchAt(2);
  await store(times(8, (i) => visit(2.1 + i, { ip: "203.0.113.9" })));
  expect(await reportAt(10)).toHaveLength(1);
});

test("a rule that blocks more visitors than the plan said is one alert, which is not repeated, and resolves when it stops", async () => {
  await save();
  await store(attacks());
  expect(await reportAt(2)).toEqual([]);
  await store(times(14, (i) => visit(2 + i / 60)));
  expect(await reportAt(3)).toEqual([
    'first Zone 101: rule 942100 blocks 14 visits since 2026-11-20 14:00 UTC; the plan "Switch" said 0.29 a day. Let the rule log again, or exclude it where it matches visitors: longwatch review samples --zone 101 --rule 942100 shows where',
  ]);
  // A second run, as of another replica or after a kill, writes nothing twice.
  expect(await reportAt(3)).toEqual([]);
  await store(times(3, (i) => visit(4 + i / 60)));
  expect(await reportAt(5)).toEqual([]);
  expect(await reportAt(10)).toEqual([]);
  expect(await reportAt(10.2)).toEqual([
    "resolved Zone 101: rule 942100 blocks no more visitors than planned",
  ]);
  // What was reported raises no second alert.
  expect(await reportAt(11)).toEqual([]);
});

test("a rule that logs again resolves its alert, and is named as drift", async () => {
  const id = await save();
  await store([...attacks(), ...times(14, (i) => visit(1.7 + i / 60))]);
  await reportAt(1.6);
  expect(await reportAt(2)).toHaveLength(1);
  await store(times(12, (i) => send(2.5 + i / 60, { action: "Logged" })));
  expect(await reportAt(3)).toEqual(["resolved Zone 101: rule 942100 blocks no more visitors than planned"]);
  expect(await stateOf(id)).toEqual({ isFollowed: true, drift: [[SQL, false]] });
});

test("a rule that was to log and begins to block is drift, if it did log before", async () => {
  const id = await save();
  await store([...attacks(), ...times(12, (i) => send(1 + i / 60, { rules: [RCE], action: "Logged" }))]);
  await watchAt(2);
  await store(times(12, (i) => send(2 + i / 60, { rules: [RCE] })));
  await watchAt(3);
  expect(await stateOf(id)).toEqual({ isFollowed: true, drift: [[RCE, true]] });
});

test("no alert is raised within the estimate, of one visitor who tries again, of attackers, or of a plan that nobody follows", async () => {
  await save();
  await store([
    ...attacks(),
    ...times(3, (i) => visit(2 + i / 60)),
    ...times(40, (i) => visit(2 + i / 60, { rules: [XSS], ip: "203.0.113.9" })),
    ...times(60, (i) => send(2 + i / 120)),
    // Visitors whose requests are logged only.
    ...times(30, (i) => visit(2 + i / 60, { rules: [RCE], action: "Logged" })),
  ]);
  expect(await reportAt(1.9)).toEqual([]);
  expect(await reportAt(3)).toEqual([]);

  await database.pool.query("truncate review_plans");
  await save({ block: [SQL, XSS, RCE], log: [] });
  await store(times(30, (i) => visit(3 + i / 60)));
  // RCE is to block and logs.
  expect(await reportAt(4)).toEqual([]);
});

test("a rule whose worst day had many visitors raises no alert on such a day", async () => {
  await save({ promised: [{ rule: SQL, visitors: 30, worst: 20 }] });
  await store(attacks());
  await watchAt(2);
  await store(times(20, (i) => visit(2 + i / 60)));
  expect(await reportAt(3)).toEqual([]);
  await store(times(30, (i) => visit(3 + i / 60)));
  expect(await reportAt(4)).toHaveLength(1);
});

test("a program that comes day after day is no visitor, although one day looks like it", async () => {
  await save();
  await store(attacks());
  await watchAt(2);
  const job = (hours: number, i: number) =>
    visit(hours, { ua: "backup/1.0", ip: `203.0.113.${i + 1}`, url: "https://shop.example.test/job" });
  await store([2, -24, -48, -72].flatMap((day) => times(8, (i) => job(day + i / 60 + 0.1, i))));
  expect(await reportAt(3)).toEqual([]);
});

test("only the newest plan that is followed is watched, and a deleted plan resolves its alert", async () => {
  const older = await save();
  await store([...attacks(), ...times(14, (i) => visit(1.7 + i / 60))]);
  await watchAt(1.6);
  expect(await reportAt(2)).toHaveLength(1);
  const newer = await save({}, 3);
  expect(await reportAt(4)).toEqual([]);
  await store(attacks(4.1));
  expect(await reportAt(5)).toEqual(["resolved Zone 101: rule 942100 blocks no more visitors than planned"]);
  expect([(await stateOf(older)).isFollowed, (await stateOf(newer)).isFollowed]).toEqual([false, true]);

  await store(times(14, (i) => visit(5 + i / 60)));
  expect(await reportAt(6)).toHaveLength(1);
  const row = await readPlan(newer);
  if (row === null) throw new Error("no plan");
  await deleteReviewPlan(database.db, row, at(6.1));
  expect(await reportAt(6.2)).toHaveLength(1);
  await watchAt(31);
  expect(await listReviewPlans(database.db, null, { withDeleted: true })).toHaveLength(1);
});

test("without a saved plan the job reads no event", async () => {
  expect(await watchAt(1)).toBe("no plan is saved");
});
