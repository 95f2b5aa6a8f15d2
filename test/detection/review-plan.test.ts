import { expect, test } from "vitest";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import type { ReviewPlanOutput } from "#detection/review/plan-zone.ts";
import { planReview } from "#detection/rules/review/plan-review.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { REQUEST_CLASSES } from "#model/kinds.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { packFacts } from "#model/request-facts.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { openArchiveWorld } from "../archive/files/archive-world.ts";
import { testBothWays } from "../faces/cli/both-ways.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";
import { makeEvent } from "./trend-support.ts";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const TODAY = Date.parse("2026-11-28");
const NOTHING = { hasSession: false, hasOwnReferer: false, hasIdiom: false, isTool: false, hasBody: null };
const VISITOR = packFacts({ ...NOTHING, hasSession: true, hasOwnReferer: true });
const HOSTILE = packFacts({ ...NOTHING, hasIdiom: true });
const FRESH_ZONE = 102;

const world = await openArchiveWorld();
let ids = 0;

function send(
  day: number,
  path: string,
  facts: number,
  rules: readonly string[],
  over: Partial<WafEvent> = {},
): WafEvent[] {
  ids += 1;
  return rules.map((ruleId, place) =>
    makeEvent({
      occurredAt: TODAY - day * DAY_MS + HOUR_MS + ids,
      logId: `e${ids}-${place}`,
      requestId: `r${ids}`,
      ip: `203.0.113.${ids % 250}`,
      url: `https://shop.example.test${path}`,
      ua: "Mozilla/5.0 (X11) Chrome/140.0",
      action: "log",
      feature: "waf",
      facts,
      ...over,
      ruleId,
    }),
  );
}

/** Days are counted back from today. Of the last seven: 29 hostile and 15 of visitors. */
const days = Array.from({ length: 28 }, (_, day) => day);
const events = days.flatMap((day) => [
  // Only attacks match it.
  ...send(day, "/a", HOSTILE, day < 2 ? ["942100", "949110"] : ["942100"]),
  // Few visitors match it, on one path; attacks elsewhere.
  ...(day % 7 === 3 ? [1, 2].flatMap(() => send(day, "/checkout", VISITOR, ["941100"])) : []),
  ...[0, 1, 2].flatMap(() => send(day, "/x", HOSTILE, ["941100"])),
  // Visitors match it on many paths.
  ...[0, 1].flatMap((n) => send(day, `/page-${"ab"[n]}${"xyz"[day % 3]}/edit`, VISITOR, ["932100"])),
]);
await world.store(
  [
    ...events,
    ...send(1, "/bot", HOSTILE, ["2097160"], { feature: "bot detection" }),
    ...send(1, "/old", HOSTILE, ["920350"]),
  ],
  { hasRecord: () => false },
);
await world.store(
  [0, 1, 2].flatMap((day) => send(day, "/a", HOSTILE, ["942100"])),
  { hasRecord: () => false, zoneId: FRESH_ZONE },
);

const recorded = send(1, "/form", VISITOR, ["943110"], { ip: "198.51.100.77" });
await world.store(recorded, { hasRecord: () => false });
await insertRawBlocks(
  world.database.db,
  101,
  await packRawBlocks(
    recorded.map((event) => {
      const log = JSON.stringify({ Url: event.url, TriggerMatch: { Key: "ARGS:title", Value: "it's" } });
      const entry = { logId: event.logId, timestamp: event.occurredAt, log, labels: { method: "POST" } };
      return {
        occurredAt: event.occurredAt,
        logIdHash: hashEventKey(event),
        raw: Buffer.from(JSON.stringify(entry)),
      };
    }),
  ),
);

interface Sample {
  readonly kind: string;
  readonly class: string;
  readonly at: string;
  readonly ip: string;
  readonly url: string;
}

const testWays = testBothWays(await loadSubject("review"), () => ({ database: world.database, now: NOW }));
const plan = async (run: (...args: string[]) => Promise<{ out: string; err: string }>, ...args: string[]) => {
  const { out, err } = await run("plan", "--zone", "101", "--json", ...args);
  expect(err).toBe("");
  return JSON.parse(out) as ReviewPlanOutput;
};

testWays.both(
  "review plan blocks what visitors never matched, excludes one path, and proves it on the last seven days",
  async ({ run }) => {
    const found = await plan(run);
    const plans = Object.fromEntries(
      found.rules.map(({ rule, plan, exclusions }) => [rule, [plan, ...exclusions]]),
    );
    expect(plans).toEqual({
      "942100": ["block"],
      "949110": ["unplanned"],
      "941100": ["block-after-exclusion", "/checkout"],
      "932100": ["log"],
      "2097160": ["unplanned"],
      // Nobody matched these before the last seven days. The second one reads headers, which a new app changes for all visitors.
      "943110": ["block"],
      "920350": ["undecided"],
    });
    expect(found.learned).toEqual({ from: "2026-10-30", to: "2026-11-21", days: 21 });
    expect(found.judged).toEqual({ from: "2026-11-22", to: "2026-11-28", days: 7 });
    expect(found.totals).toMatchObject({
      hostile: { all: 30, stops: 28, stopped: 0 },
      visitor: { all: 17, stops: 1, stopped: 0 },
      worstDay: 1,
    });
    expect(found.rules.find(({ rule }) => rule === "942100")).toMatchObject({
      attacksThrough: 7,
      visitorsWorst: 0,
    });
    expect(found.summary).toBe(
      "Switch 3 of 5 rules to blocking, 1 of them after an exclusion. In the last 7 days that would have stopped 28 of 30 hostile requests, and 1 request of visitors (by rule 943110 on /form) and 0 of unknown senders, at most 1 on a day. Without it, 30 of the hostile requests got through.",
    );
  },
);

testWays(
  "review plan says in 80 columns what it is made from and why a rule keeps logging",
  async ({ run }) => {
    const { code, out } = await run("plan", "--zone", "101");
    expect(code).toBe(0);
    expect(out).toContain("Planned from 2026-10-30 to 2026-11-21 (21 days with requests)");
    expect(out).toMatch(/942100 +logs +7 +0 +0 +0\/0 +7 +block\n/);
    expect(out).toContain("932100: Only visitors match it.");
    expect(out).toContain("943110: Nobody matched it on the days before the last seven.");
    expect(out).toContain("941100 must not block on /checkout: see `exclusion try`");
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  },
);

testWays("what a choice of one's own would stop is counted anew", async ({ run }) => {
  const chosen = await plan(run, "--block", "932100,941100", "--log", "942100,943110");
  expect(chosen.choice).toEqual({ block: ["941100", "932100"], exclusions: [] });
  expect(chosen.totals).toMatchObject({ hostile: { stops: 21 }, visitor: { stops: 16 }, worstDay: 4 });
  const narrower = await plan(run, "--block", "941100", "--log", "943110", "--exclude", "941100@/checkout");
  expect(narrower.totals.visitor.stops).toBe(0);
});

testWays.both("a choice is written for Terraform, as calls one at a time, and as CSV", async ({ run }) => {
  const form = async (name: string) => (await run("plan", "--zone", "101", "--form", name)).out;
  expect(await form("terraform")).toContain('rules_logonly  = ["932100", "920350"]');
  expect(await form("terraform")).toContain("# First exclude rule 941100 on /checkout");
  const calls = (await form("curl")).split("\n").filter((line) => line.startsWith("curl"));
  expect(calls.map((call) => /--data '(.*)'$/.exec(call)?.[1])).toEqual([
    '{"ruleId":"941100","action":0}',
    '{"ruleId":"942100","action":0}',
    '{"ruleId":"943110","action":0}',
  ]);
  expect(await form("csv")).toContain('"941100","logs","block","/checkout","block-after-exclusion"');
});

test("a rule does not block where people seldom match rules, unless attackers matched it there or it reads no texts", () => {
  const [hostile, visitor] = [REQUEST_CLASSES.indexOf("hostile"), REQUEST_CLASSES.indexOf("visitor")];
  const rules = ["942100", "941100", "920350", "932130"];
  const lately = { blocked: 0, challenged: 0, logged: 1, other: 0 };
  const { rules: planned } = planReview(
    {
      table: {
        rules,
        paths: ["/login"],
        sets: rules.map((_, place) => [place]),
        rows: [
          ...Array.from({ length: 20 }, (_, day) => [day, hostile, 0, 0, -1, 5] as const),
          [3, hostile, 0, 1, 0, 9],
          [3, hostile, 0, 2, -1, 9],
          [3, visitor, 0, 3, 0, 2],
        ],
      },
      seen: rules.map((rule) => ({ rule, feature: "waf", isCounted: true, lately })),
      hasLed: true,
    },
    { from: 0, to: 20 },
  );
  expect(
    planned.map(({ rule, plan, exclusions }) => [rule, plan, ...exclusions.map(({ path }) => path)]),
  ).toEqual([
    ["942100", "block-after-exclusion", "/login"],
    ["941100", "block"],
    ["920350", "block"],
    ["932130", "log"],
  ]);
});

test("a rule that people match with nearly every request to a page blocks elsewhere, unless they began lately or match it only there", () => {
  const [hostile, visitor] = [REQUEST_CLASSES.indexOf("hostile"), REQUEST_CLASSES.indexOf("visitor")];
  const rules = ["932100", "942370", "942180", "931130", "920300"];
  const lately = { blocked: 0, challenged: 0, logged: 1, other: 0 };
  const days = Array.from({ length: 20 }, (_, day) => day);
  const { rules: planned } = planReview(
    {
      table: {
        rules,
        paths: ["/graphql", "/new", "/out", "/api", "/contact"],
        sets: [[0], [1], [2], [3], [4], []],
        rows: days.flatMap((day) => [
          ...[0, 1, 2, 4].map((set) => [day, hostile, 0, set, -1, 1] as const),
          [day, visitor, 0, 0, 0, 9] as const,
          ...(day < 15 ? [] : [[day, visitor, 0, 1, 1, 9] as const]),
          // People write it in half of their requests.
          [day, visitor, 0, 2, 4, 5] as const,
          [day, visitor, 0, 5, 4, 5] as const,
          [day, visitor, 0, 3, 2, 9] as const,
          // It reads headers: a new app changes them for everybody.
          [day, visitor, 0, 4, 3, 9] as const,
        ]),
      },
      seen: rules.map((rule) => ({ rule, feature: "waf", isCounted: true, lately })),
      hasLed: true,
    },
    { from: 0, to: 20 },
  );
  expect(
    planned.map(({ rule, plan, exclusions }) => [rule, plan, ...exclusions.map(({ path }) => path)]),
  ).toEqual([
    ["932100", "block-after-exclusion", "/graphql"],
    ["942370", "log"],
    ["942180", "log"],
    ["931130", "log"],
    ["920300", "log"],
  ]);
});

testWays("a zone with under ten days says what cannot be said", async ({ run }) => {
  const { out } = await run("plan", "--zone", String(FRESH_ZONE), "--json");
  const found = JSON.parse(out) as ReviewPlanOutput;
  expect(found.rules).toMatchObject([{ rule: "942100", plan: "undecided", hostile: 3 }]);
  expect(found.summary).toBe(
    "There are 0 days to learn from before the last 7, and 10 are needed: nothing is planned to block yet. In the last 3 days 3 of 3 hostile requests got through.",
  );
});

testWays("every mistake names field, value and rule", async ({ run }) => {
  for (const [args, text] of [
    [
      ["--block", "111"],
      '--block "111" must be a rule with events in the last 30 days (941100, 932100, 942100, ',
    ],
    [["--block", "949110"], '--block "949110" cannot be planned: Rule 949110 only sums up'],
    [["--block", "2097160"], '--block "2097160" cannot be planned: The events are not of the WAF'],
    [["--exclude", "949110@/a"], '--exclude "949110" cannot be planned'],
    [["--exclude", "942100"], '--exclude "942100" must be rules with paths, such as 942100@/checkout'],
    [["--form", "hcl"], "--form"],
  ] as const) {
    const { code, err } = await run("plan", "--zone", "101", ...args);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(text) as string });
  }
  expect(await run("plan", "--zone", "9")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--zone") as string,
  });
});

testWays(
  "review samples shows ten visitors that a rule would stop, and the attacks that get through without it",
  async ({ run }) => {
    const samples = async (...args: string[]) =>
      (JSON.parse((await run("samples", "--zone", "101", "--json", ...args)).out) as { items: Sample[] })
        .items;
    const visitors = await samples("--rule", "932100");
    expect(visitors).toHaveLength(10);
    expect(new Set(visitors.map(({ kind, class: of }) => `${kind} ${of}`))).toEqual(
      new Set(["visitor visitor"]),
    );
    expect(new Set(visitors.map(({ ip }) => ip)).size).toBe(10);
    const attacks = await samples("--rule", "942100");
    expect(attacks.map(({ kind }) => kind)).toEqual(Array(7).fill("attack"));
    expect(attacks.map(({ at }) => at)).toEqual(
      attacks
        .map(({ at }) => at)
        .toSorted()
        .reverse(),
    );
    // Another blocking rule that matches the same requests stops them.
    expect(await samples("--rule", "942100", "--block", "942100,941100")).toHaveLength(7);
    const both = await samples("--rule", "941100", "--exclude", "941100@/checkout");
    expect(new Set(both.map(({ kind, url }) => `${kind} ${url}`))).toEqual(
      new Set(["attack https://shop.example.test/x"]),
    );
    expect((await run("samples", "--zone", "101", "--rule", "5")).out).toContain(
      "No visitor would be stopped",
    );
  },
);

test("a sample has what its record says, and a masked key sees neither the text nor the address", async () => {
  const { url } = await startArchive(world.database.url, {}, { clock: () => NOW });
  const ask = async (isMasked: boolean) => {
    const { key } = await makeKey(world.database, "reader", { isMasked });
    const answer = await fetch(`${url}/api/v1/review/samples?zone=101&rule=943110`, {
      headers: { AccessKey: key },
    });
    return ((await answer.json()) as { items: Sample[] }).items;
  };
  expect(await ask(false)).toMatchObject([
    { ip: "198.51.100.77", method: "POST", parameter: "ARGS:title", matched: "it's" },
  ]);
  expect(await ask(true)).toMatchObject([{ ip: "198.51.100.*", method: "", parameter: null, matched: null }]);
});

test("a key of another zone sees no plan", async () => {
  const { url } = await startArchive(world.database.url, {}, { clock: () => NOW });
  const foreign = await makeKey(world.database, "reader", { zoneIds: [FRESH_ZONE] });
  const answer = await fetch(`${url}/api/v1/review?zone=101`, { headers: { AccessKey: foreign.key } });
  expect(answer.status).toBe(403);
});
