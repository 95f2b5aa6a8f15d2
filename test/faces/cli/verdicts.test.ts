import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { exclusions } from "#db/schema/alerts.ts";
import { spikes } from "#db/schema/spikes.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { MARKS, type Mark, VERDICT_CLASSES, VERDICT_FEATURES } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { describeMarksBefore, FEATURE_WORDS } from "#model/words.ts";
import { attackerOf, incidentOf } from "../../alerts/incident.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { EVIDENCE, NOW } from "../../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { verdictOf } from "../../detection/verdict/verdict-world.ts";
import { call, makeKey, startArchive } from "../http/start-archive.ts";
import { openAlertRows } from "./alert-rows.ts";
import { testBothWays } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";

const explain = await loadSubject("explain");
const others = { alerts: await loadSubject("alerts") };

let database: MigratedDatabase;
let rows: ReturnType<typeof openAlertRows>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  rows = openAlertRows(database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.db.delete(exclusions);
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

testWays.both(
  "an alert is explained with its start and its numbers, its verdicts, its sample and its exclusion",
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
        start: 0.75,
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
    expect(out).toContain("Misfire, odds 91 of 100. Time: six-hours.\n");
    for (const name of VERDICT_FEATURES) expect(out).toContain(`\n${FEATURE_WORDS[name]} `);
    expect(out).toMatch(
      /The 16 numbers are of 1 request, from 0 to 1:\n.*\nwithout any evidence +0\.75 +\+\+\+\n/,
    );
    expect(out).toMatch(/many addresses +0\.00 +-1\.25 +-----\n/);
    expect(out).toMatch(/requests with a session +\? +0\.00\n/);
    for (const said of [
      "For         All are in usual networks.",
      "Against     It began lately.",
      "Got through 0 of 1 request since 2026-11-20 15:30 UTC; 1 blocked, 0 challenged",
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
  expect(describeMarksBefore([])).toEqual([]);
  expect(describeMarksBefore([at("2026-11-03"), at("2026-11-03"), at("2026-10-30")])).toEqual([
    "You called this a misfire on 30 October and 3 November.",
  ]);
  expect(
    describeMarksBefore(["09", "08", "07", "05", "04"].map((day) => at(`2026-11-${day}`, "noise"))),
  ).toEqual(["You called this noise on 7, 8, 9 November and 2 days before."]);
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
