import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { exclusions } from "#db/schema/exclusions.ts";
import { spikes } from "#db/schema/spikes.ts";
import { verdictWeights } from "#db/schema/verdict-weights.ts";
import { loadSubject } from "#faces/cli/operations/subjects.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { MARKS, type Mark, VERDICT_CLASSES, VERDICT_FEATURES, VERDICTS } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { FEATURE_WORDS, sayMarksBefore } from "#model/verdict-words.ts";
import { SEED } from "#test/support/random-tests.ts";
import { attackerOf, incidentOf } from "../alerting/incident.ts";
import { insertSpike } from "../alerting/insert-spike.ts";
import { EVIDENCE, NOW } from "../alerting/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { verdictOf } from "../detection/verdict/verdict-world.ts";
import { call, makeKey, startArchive } from "../http/start-archive.ts";
import { openAlertRows } from "./alert-rows.ts";
import { testBothWays } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";

const explain = await loadSubject("explain");
const others = { verdict: await loadSubject("verdict"), alerts: await loadSubject("alerts") };

let database: MigratedDatabase;
let rows: ReturnType<typeof openAlertRows>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  rows = openAlertRows(database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.db.delete(exclusions);
  await database.db.delete(verdictWeights);
  await rows.clear();
  await clearAudit(database);
});

const testWays = testBothWays(explain, () => ({ database, now: NOW + HOUR_MS }), others);

function misfire(over: Partial<StoredVerdict> = {}): StoredVerdict {
  const base = verdictOf(over.look ?? "first", NOW);
  return { ...base, said: "misfire", likeliest: "misfire", odds: 0.91, title: "May be a misfire", ...over };
}

async function spikeOf(alertId: number): Promise<number> {
  return (await rows.alerts()).find(({ id }) => id === alertId)?.spikeId ?? -1;
}

async function judge(spikeId: number, verdict: StoredVerdict): Promise<void> {
  await storeVerdict(database.db, { id: spikeId, zoneId: 101 }, verdict);
}

/** A closed spike of another time with its mark, and no alert of its own. */
async function markFormer(
  daysAgo: number,
  mark: Mark,
  over: Parameters<typeof insertSpike>[1] | object = {},
) {
  const openedAt = new Date(NOW - daysAgo * DAY_MS);
  const closedAt = new Date(openedAt.getTime() + HOUR_MS);
  return insertSpike(database.db, { openedAt, closedAt, mark, markedAt: closedAt, ...over });
}

const pathsOf = (path: string) => ({
  evidence: {
    ...EVIDENCE,
    from: "",
    to: "",
    total: 1,
    sampled: 1,
    firstEventAt: null,
    lastEventAt: null,
    top: { ...EVIDENCE.top, path: [{ value: path, count: 1, share: 1 }] },
  },
});

testWays(
  "an alert is explained with its twelve numbers, its looks, its sample and its exclusion",
  async ({ run }) => {
    const id = await rows.fire();
    const spikeId = await spikeOf(id);
    const clause = { ruleIds: ["942440"], template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" };
    const features = Object.fromEntries(
      VERDICT_FEATURES.map((name, index) => [
        name,
        { value: index / 20, adds: index === 0 ? -1.25 : index / 10 },
      ]),
    ) as StoredVerdict["features"];
    await judge(spikeId, misfire());
    await judge(
      spikeId,
      misfire({
        look: "six-hours",
        judgedAt: NOW + 30 * MINUTE_MS,
        title: "Misfire",
        features: { ...features, session: { value: null, adds: 0 } },
        for: ["All are in usual networks.", "Half have a session."],
        against: "It began lately.",
        missing: ["JA4"],
        exclusion: {
          form: "narrow",
          ruleId: "942440",
          clauses: [clause],
          covered: 0.94,
          events: 412,
          together: [],
          refusal: null,
        },
      }),
    );
    const followedAt = new Date(NOW + 40 * MINUTE_MS);
    await database.db
      .insert(exclusions)
      .values({ proposedAt: new Date(NOW), followedAt, spikeId, zoneId: 101, key: "k", clause });
    const { code, out, err } = await run("--alert", String(id));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("Misfire, odds 91 of 100. Look: six-hours.\n");
    for (const name of VERDICT_FEATURES) expect(out).toContain(`\n${FEATURE_WORDS[name]} `);
    expect(out).toMatch(/many addresses +0\.00 +-1\.25 +-----\n/);
    expect(out).toMatch(/requests with a session +\? +0\.00\n/);
    for (const said of [
      "For         All are in usual networks.",
      "Against     It began lately.",
      "Got through 0 events; 1 blocked, 0 challenged",
      "Sample      blocked: GET https[:]//shop.example.test/account?mail=a@b.test from 203.0.113.7, rule 942100, matched ARGS:mail a@b.test",
      "Not known   JA4",
      "Next        Look at it.",
      "Exclusion (narrow), for 94 % of 412 events. Longwatch does not apply it.\n  rule 942440 for ARGS:title of POST /reviews/{n}\n",
      "Followed since 2026-11-20 16:10: rule 942440 for ARGS:title of POST /reviews/{n}",
    ])
      expect(out).toContain(said);
    expect(out).toMatch(/\nfirst +2026-11-20 15:30 +misfire +91 % +1\nsix-hours +2026-11-20 16:00 +misfire/);
    const json = JSON.parse((await run("--alert", String(id), "--json")).out) as object;
    const detail = JSON.parse((await run("alerts", "show", String(id), "--json")).out) as object;
    expect(json).toMatchObject({ id, mark: null, markedBefore: [] });
    expect(detail).toMatchObject({
      verdicts: [{ look: "first", judgedAt: "2026-11-20T15:30:00.000Z" }, { look: "six-hours" }],
      exclusions: [
        { clause: "rule 942440 for ARGS:title of POST /reviews/{n}", followedAt: followedAt.toISOString() },
      ],
    });
  },
);

testWays("text of a request cannot move the cursor or make a link in an explanation", async ({ run }) => {
  const id = await rows.fire();
  const hostile = "https://x.test/\u001b[2J\u202e\n<script>";
  const sample = { ...misfire().sample, url: hostile, matched: hostile, parameter: hostile, ip: hostile };
  await judge(await spikeOf(id), misfire({ sample: sample as never, who: hostile, for: [hostile] }));
  const { out } = await run("--alert", String(id));
  expect(out).toContain("\\u{1b}[2J\\u{202e} <script>");
  for (const raw of ["\u001b", "\u202e", "https://"]) expect(out).not.toContain(raw);
});

testWays("an alert without a verdict says so, and one that is not there is an error", async ({ run }) => {
  const id = await rows.fire();
  expect((await run("--alert", String(id))).out).toContain("This alert has no verdict.\n");
  expect(await run("--alert", "4711")).toMatchObject({
    code: 1,
    err: expect.stringContaining("There is no alert 4711, or this key may not see it."),
  });
  expect(await run()).toMatchObject({ code: 2, err: expect.stringContaining("--alert is missing") });
});

testWays(
  "an explanation says how the same rule and path was marked in the last 90 days",
  async ({ run, by }) => {
    await markFormer(11, "misfire", pathsOf("/reviews/7"));
    await markFormer(17, "misfire", pathsOf("/reviews/19"));
    await markFormer(18, "attack", pathsOf("/reviews/19"));
    await markFormer(5, "attack", pathsOf("/admin"));
    await markFormer(95, "scanner", pathsOf("/reviews/7"));
    await markFormer(3, "scanner", { ...pathsOf("/reviews/7"), ruleId: "1" });
    await markFormer(3, "scanner", { ...pathsOf("/reviews/7"), zoneId: 102 });
    const id = await rows.fire(pathsOf("/reviews/3"));
    await judge(await spikeOf(id), misfire());
    await run("alerts", "mark", String(id), "--as", "broken-client", ...by("ann"));
    const { out } = await run("--alert", String(id));
    expect(out).toContain(
      [
        "  Marks       Marked as broken-client.",
        "  Marks       You called this a misfire on 3 and 9 November.",
        "  Marks       You called this an attack on 2 November.\n",
      ].join("\n"),
    );
    expect(out.match(/Marks /g)).toHaveLength(3);
  },
);

testWays(
  "an explanation of an incident says how incidents with one of its attackers were marked",
  async ({ run }) => {
    const sources = (address: string) => incidentOf(attackerOf(address, 0));
    await markFormer(4, "scanner", sources("203.0.113.9"));
    await markFormer(6, "attack", sources("198.51.100.1"));
    const id = await rows.fire(incidentOf(attackerOf("192.0.2.4", 0), attackerOf("203.0.113.9", 0)));
    const { out } = await run("--alert", String(id));
    expect(out).toContain("You called this a scanner on 16 November.");
    expect(out).not.toContain("an attack");
  },
);

test("former marks are said newest days last, each month once, and at most three days", () => {
  const at = (day: string, mark: Mark = "misfire") => ({ mark, at: `${day}T12:00:00Z` });
  expect(sayMarksBefore([])).toEqual([]);
  expect(sayMarksBefore([at("2026-11-03"), at("2026-11-03"), at("2026-10-30")])).toEqual([
    "You called this a misfire on 30 October and 3 November.",
  ]);
  expect(sayMarksBefore(["09", "08", "07", "05", "04"].map((day) => at(`2026-11-${day}`, "noise")))).toEqual([
    "You called this noise on 7, 8, 9 November and 2 days before.",
  ]);
});

/** Marked spikes with a first and a latest verdict, at random. */
async function drawMarks(number: number) {
  const any = fc.record({
    mark: fc.constantFrom(...MARKS),
    first: fc.constantFrom(...VERDICTS),
    said: fc.constantFrom(...VERDICTS),
    zoneId: fc.constantFrom(101, 102),
    daysAgo: fc.integer({ min: 1, max: 60 }),
  });
  const drawn = fc.sample(any, { numRuns: number, seed: SEED });
  for (const { mark, first, said, zoneId, daysAgo } of drawn) {
    const id = await markFormer(daysAgo, mark, { zoneId });
    const judgedAt = NOW - daysAgo * DAY_MS;
    await storeVerdict(database.db, { id, zoneId }, misfire({ said: first, judgedAt }));
    await storeVerdict(
      database.db,
      { id, zoneId },
      misfire({ look: "day", said, judgedAt: judgedAt + DAY_MS }),
    );
  }
  return drawn.map((one) => ({
    ...one,
    month: new Date(NOW - one.daysAgo * DAY_MS).toISOString().slice(0, 7),
  }));
}

interface Card {
  readonly items: readonly {
    readonly month: string;
    readonly right: number;
    readonly reasoned: number;
    readonly attacksCalledMisfire: number;
    readonly table: Readonly<Record<string, Readonly<Record<string, number>>>>;
  }[];
}

testWays(
  "the score card of each month is a naive count of marks and of the latest verdicts",
  async ({ run }) => {
    const drawn = await drawMarks(60);
    const read = async (...args: string[]) =>
      JSON.parse((await run("verdict", "score", "--json", ...args)).out) as Card;
    const check = ({ items }: Card, from: typeof drawn) => {
      const months = [...new Set(from.map(({ month }) => month))].sort().reverse();
      expect(items.map(({ month }) => month)).toEqual(months);
      for (const { month, right, reasoned, attacksCalledMisfire, table } of items) {
        const own = from.filter((one) => one.month === month);
        const count = (is: (one: (typeof own)[number]) => boolean) => own.filter(is).length;
        expect(right).toBe(count(({ mark, said }) => mark === said));
        expect(reasoned).toBe(count(({ mark }) => mark !== "noise"));
        expect(attacksCalledMisfire).toBe(count(({ mark, said }) => mark === "attack" && said === "misfire"));
        for (const mark of MARKS)
          for (const said of VERDICTS)
            expect(table[mark]?.[said] ?? 0).toBe(count((one) => one.mark === mark && one.said === said));
      }
    };
    check(await read(), drawn);
    check(
      await read("--zone", "102"),
      drawn.filter(({ zoneId }) => zoneId === 102),
    );
    check(
      await read("--months", "1"),
      drawn.filter(({ month }) => month === "2026-11"),
    );
    const { out } = await run("verdict", "score");
    expect(out).toMatch(
      /^2026-11: \d+ marked alerts, \d+ of \d+ with a reason right \(\d+ %\), \d+ of \d+ attacks called misfire\nMARKED +ATTACK +MISFIRE/,
    );
  },
);

testWays(
  "a fit refuses with too few marks, or with marks of one class, and changes nothing",
  async ({ run }) => {
    for (let index = 0; index < 20; index += 1) await judge(await markFormer(index, "misfire"), misfire());
    for (let index = 0; index < 9; index += 1) await judge(await markFormer(index, "noise"), misfire());
    const refused = await run("verdict", "fit", "--apply");
    expect(refused.code).toBe(2);
    expect(refused.err).toContain(
      "A fit needs 20 marks with a reason, of two classes or more. Marked alerts with a verdict: 20, of classes: 1.",
    );
    expect(await database.db.$count(verdictWeights)).toBe(0);
    expect(await rows.audit()).toEqual([]);
    expect((await run("verdict", "fit", "--apply", "--reset")).err).toContain(
      '--reset "true" must be given without apply',
    );
  },
);

testWays(
  "a fit shows what would change, and stores the table with an audit entry only if it is applied",
  async ({ run, by }) => {
    // Clients with a session are attacks by a little to the shipped table.
    const features = (session: number) =>
      Object.fromEntries(
        VERDICT_FEATURES.map((name) => [name, { value: name === "session" ? session : 0.5, adds: 0 }]),
      ) as StoredVerdict["features"];
    for (let index = 0; index < 24; index += 1) {
      const mark = index % 2 === 0 ? "attack" : "broken-client";
      await judge(
        await markFormer(index, mark),
        misfire({ features: features(mark === "attack" ? 0.5 : 0.9) }),
      );
    }
    const shown = await run("verdict", "fit", ...by("ann"));
    expect(shown.code).toBe(0);
    expect(shown.out).toMatch(/^NUMBER +CLASS +NOW +NEW\n/);
    expect(shown.out).toContain("Marks: 12 attack, 0 misfire, 0 scanner, 12 broken-client, 0 crawler.\n");
    expect(shown.out).toContain("Nothing was changed.");
    const before = Number(/Table in use: (\d+) of 24 right/.exec(shown.out)?.[1]);
    const after = Number(/New table: (\d+) of 24 right/.exec(shown.out)?.[1]);
    expect(after).toBeGreaterThan(before);
    expect(await database.db.$count(verdictWeights)).toBe(0);
    expect(await rows.audit()).toEqual([]);

    expect((await run("verdict", "fit", "--apply", ...by("ann"))).out).toContain(
      "use the new table from now on",
    );
    const [stored] = await database.db.select().from(verdictWeights);
    expect(stored).toMatchObject({ marks: 24, weights: { start: expect.any(Object) } });
    // The fitted table is the one in use now.
    const again = (await run("verdict", "fit")).out;
    expect(Number(/Table in use: (\d+) of 24 right/.exec(again)?.[1])).toBeGreaterThanOrEqual(after);

    expect((await run("verdict", "fit", "--reset", ...by("bob"))).code).toBe(0);
    const [latest] = await database.db.select().from(verdictWeights).orderBy(sql`id desc`).limit(1);
    expect(latest?.weights).toBeNull();
    await run("verdict", "fit", "--reset", ...by("bob"));
    expect((await rows.audit()).map(({ action, actor }) => [action, /ann|bob/.exec(actor)?.[0]])).toEqual([
      ["verdict.fitted", "ann"],
      ["verdict.reset", "bob"],
    ]);
  },
);

test("a key may read the card of its own zones, and only an administrator of all zones may fit", async () => {
  const { url } = await startArchive(database.url, {}, { clock: () => NOW });
  const [own, operator, admin] = await Promise.all([
    makeKey(database, "reader", { zoneIds: [101] }),
    makeKey(database, "operator"),
    makeKey(database, "admin"),
  ]);
  const ask = async (path: string, { key }: { readonly key: string }, init?: RequestInit) =>
    (await call(url, `/api/v1/verdicts/${path}`, key, init)).status;
  const fit = { method: "POST", body: "{}" };
  expect(await ask("score", own)).toBe(200);
  expect(await ask("score?zone=102", own)).toBe(403);
  expect(await ask("fit", operator, fit)).toBe(403);
  expect(await ask("fit", admin, fit)).toBe(409);
});

test("a masked key sees no address in a verdict, and no text that matched", async () => {
  const id = await rows.fire();
  const who = "from 203.0.113.7 and 2001:db8::7";
  const url = "https://shop.example.test/?ip=203.0.113.7";
  const sample = { ...misfire().sample, url, matched: "203.0.113.7 wrote it" };
  await judge(await spikeOf(id), misfire({ who, for: [who], nextStep: who, sample: sample as never }));
  const { url: origin } = await startArchive(database.url, {}, { clock: () => NOW });
  for (const path of [`alerts/${id}`, `alerts/${id}/verdict`]) {
    const read = async (isMasked: boolean) => {
      const { key } = await makeKey(database, "reader", { isMasked });
      return (await call(origin, `/api/v1/${path}`, key)).text();
    };
    expect(await read(false)).toContain("203.0.113.7 wrote it");
    const masked = await read(true);
    expect(masked).not.toContain("wrote it");
    expect(masked).not.toMatch(/203\.0\.113\.7|db8::7/);
    // Times and rule ids are no addresses.
    expect(masked).toContain('"judgedAt":"2026-11-20T15:30:00.000Z"');
    expect(masked).toContain('"ruleId":"942100"');
  }
});

test("every class of a verdict can be given as a mark, and every mark but attack counts for the suggested z", async () => {
  expect(MARKS).toEqual(expect.arrayContaining([...VERDICT_CLASSES]));
  for (const mark of MARKS.filter((one) => one !== "attack")) {
    await rows.clear();
    for (const days of [1, 2, 3]) await markFormer(days, mark);
    await database.db.update(spikes).set({ score: 5.2 });
    const id = await rows.fire();
    const { url } = await startArchive(database.url, {}, { clock: () => NOW + MINUTE_MS });
    const { key } = await makeKey(database, "reader");
    const answer = await call(url, `/api/v1/alerts/${id}`, key);
    expect(await answer.json()).toMatchObject({ suggestedZ: { z: 5.5, marked: 3 } });
  }
});
