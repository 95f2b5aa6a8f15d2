import { expect, test } from "vitest";
import { type Emulator } from "#emulator/emulator.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { bodyOf, call, NOW, openEmulator, oracle } from "./support.ts";

interface Counters {
  readonly totalTriggers: number;
  readonly blockedRequests: number;
  readonly loggedRequests: number;
  readonly challengedRequests: number;
}

const recommend = (emulator: Emulator, rule: string, zone = 101) =>
  call(emulator, `/shield/waf/rules/review-triggered/ai-recommendation/${zone}/${rule}`);
const metrics = (emulator: Emulator, rule: string, zone = 101) =>
  call(emulator, `/shield/metrics/shield-zone/${zone}/waf-rule/${rule}`);

test("a recommendation echoes the rule and quotes its newest event", async () => {
  const emulator = await openEmulator();
  const newest = (await oracle(emulator)).findLast((event) => event.ruleId === "941100");
  const body = await bodyOf<{ recommendation: string }>(recommend(emulator, "941100"));
  expect(body).toMatchObject({ shieldZoneId: 101, ruleId: "941100", success: true, errorResponse: null });
  expect(body.recommendation).toContain(newest?.url);
  expect(body.recommendation.split("\n").length).toBeGreaterThan(5);
});

test.each([
  {
    advice: "limit-reached",
    status: 202,
    body: {
      success: false,
      recommendation: null,
      errorResponse: { errorKey: "limit_reached.ai_recommendation" },
    },
  },
  {
    advice: "not-enough-data",
    status: 200,
    body: { success: false, errorResponse: { errorKey: "not_enough_data.ai_recommendation" } },
  },
  {
    advice: "model-failure",
    status: 200,
    body: { success: false, recommendation: null, errorResponse: null },
  },
  { advice: "null-text", status: 200, body: { success: true, recommendation: null } },
  { advice: "empty-text", status: 200, body: { success: true, recommendation: "" } },
] as const)("the recommendation can fail: $advice", async ({ advice, status, body }) => {
  const emulator = await openEmulator({ switches: { advice } });
  const response = await recommend(emulator, "941100");
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject(body);
});

test("a rule that was not triggered and a zone that is not there are filled 202s", async () => {
  const emulator = await openEmulator();
  const rule = await recommend(emulator, "999999");
  expect([rule.status, await rule.json()]).toMatchObject([
    202,
    { ruleId: "999999", errorResponse: { errorKey: "not_found_or_unauthorised_access.waf_rule" } },
  ]);
  const zone = await recommend(emulator, "941100", 7);
  expect([zone.status, await zone.json()]).toMatchObject([
    202,
    { errorResponse: { errorKey: "not_found_or_unauthorised_access.shieldzone" } },
  ]);
  expect(await bodyOf(metrics(emulator, "941100", 7))).toMatchObject({
    error: { errorKey: "not_found_or_unauthorised_access.shieldzone" },
  });
  expect((await metrics(emulator, "94;1100")).status).toBe(400);
});

test("metrics give 28 days by dd-MM-yyyy, exact since the history began, and a total that is their sum", async () => {
  const emulator = await openEmulator({ historyHours: 60, eventsPerSecond: 0.2 });
  emulator.addAttack("zone=101,rule=942100,start=-20m,duration=5m,rate=4/s");
  emulator.advance(30 * MINUTE_MS);
  const body = await bodyOf<{ data: Counters & { overviewPastTwentyEightDays: Record<string, Counters> } }>(
    metrics(emulator, "942100"),
  );
  const days = body.data.overviewPastTwentyEightDays;
  expect(Object.keys(days)).toHaveLength(28);
  expect(Object.keys(days).slice(-2)).toEqual(["19-11-2026", "20-11-2026"]);
  const events = (await oracle(emulator)).filter((event) => event.ruleId === "942100");
  for (const [key, date] of [
    ["19-11-2026", 19],
    ["20-11-2026", 20],
  ] as const) {
    const ofDay = events.filter((event) => new Date(event.timestamp).getUTCDate() === date);
    const count = (action: string) => ofDay.filter((event) => event.action === action).length;
    expect(days[key]).toEqual({
      totalTriggers: ofDay.length,
      blockedRequests: count("block"),
      loggedRequests: count("log"),
      challengedRequests: count("challenge"),
    });
  }
  expect(days["01-11-2026"]?.totalTriggers).toBeGreaterThan(0);
  expect(body.data.totalTriggers).toBe(Object.values(days).reduce((sum, day) => sum + day.totalTriggers, 0));
});

test("a day keeps its count after its events are forgotten, and ISO keys come by switch", async () => {
  const emulator = await openEmulator({ historyHours: 20, eventsPerSecond: 0.05 });
  type Body = { data: { overviewPastTwentyEightDays: Record<string, Counters> } };
  const before = await bodyOf<Body>(metrics(emulator, "930130"));
  emulator.setNow(NOW + 9 * 24 * 60 * MINUTE_MS);
  const after = await bodyOf<Body>(metrics(emulator, "930130"));
  expect(after.data.overviewPastTwentyEightDays["19-11-2026"]).toEqual(
    before.data.overviewPastTwentyEightDays["19-11-2026"],
  );
  emulator.setSwitches({ metricDays: "iso" });
  const iso = await bodyOf<Body>(metrics(emulator, "930130"));
  expect(iso.data.overviewPastTwentyEightDays["2026-11-19T00:00:00Z"]).toEqual(
    before.data.overviewPastTwentyEightDays["19-11-2026"],
  );
});

test("a rule without events has 28 days of zeros", async () => {
  const emulator = await openEmulator({ historyHours: 1 });
  const body = await bodyOf<{ data: Counters & { overviewPastTwentyEightDays: object } }>(
    metrics(emulator, "999999"),
  );
  expect(body.data).toMatchObject({ totalTriggers: 0, blockedRequests: 0 });
  expect(Object.keys(body.data.overviewPastTwentyEightDays)).toHaveLength(28);
});

test.each([
  ["/shield/waf/rules/review-triggered/ai-recommendation/x/942100", 400],
  ["/shield/waf/rules/review-triggered/ai-recommendation/2147483648/942100", 400],
  ["/shield/waf/rules/review-triggered/ai-recommendation/101/", 404],
  ["/shield/metrics/shield-zone/x/waf-rule/942100", 400],
  ["/shield/metrics/shield-zone/101/waf-rule/94;1100", 400],
])("%s is refused with its status alone", async (path, status) => {
  const emulator = await openEmulator({ historyHours: 0 });
  const response = await call(emulator, path);
  expect([response.status, await response.json()]).toEqual([status, { statusCode: status }]);
});

test("an injected refusal of the key is the minimal error too", async () => {
  const emulator = await openEmulator({ historyHours: 0, faults: [{ kind: "unauthorized" }] });
  for (const refused of [await recommend(emulator, "942100"), await metrics(emulator, "942100")])
    expect([refused.status, await refused.json()]).toEqual([401, { statusCode: 401 }]);
});
