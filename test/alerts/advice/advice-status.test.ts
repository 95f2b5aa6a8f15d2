import { expect, test } from "vitest";
import { adviceStatus } from "#alerts/rules/advice/advice-status.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { AdviceRow } from "#model/advice.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const spike = { zoneId: 101, ruleId: "942100", openedAtMs: NOW - 10 * MINUTE_MS };

function ask(minutesAgo: number, errorKey: string | null, over: Partial<AdviceRow> = {}): AdviceRow {
  const askedAtMs = NOW - minutesAgo * MINUTE_MS;
  return { zoneId: 101, ruleId: "942100", askedAtMs, success: errorKey === null, errorKey, ...over };
}

const isDue = (rows: AdviceRow[]) => adviceStatus(spike, rows, NOW).isDue;

test("the advice of a spike without an ask is pending and due", () => {
  expect(adviceStatus(spike, [], NOW)).toEqual({
    state: "pending",
    reason: null,
    askedAtMs: null,
    isDue: true,
  });
});

test("an answer serves its episode for as long as it lasts", () => {
  const old = { ...spike, openedAtMs: NOW - 80 * HOUR_MS };
  const answered = ask(79 * 60, null);
  expect(adviceStatus(old, [answered], NOW)).toMatchObject({
    state: "present",
    askedAtMs: answered.askedAtMs,
    isDue: false,
  });
});

test("an answer serves a later episode of its rule for six hours and not longer", () => {
  expect(isDue([ask(10 + 6 * 60, null)])).toBe(false);
  expect(isDue([ask(10 + 6 * 60 + 1, null)])).toBe(true);
});

test("an answer about another rule or zone is none", () => {
  expect(isDue([ask(1, null, { ruleId: "941100" }), ask(1, null, { zoneId: 102 })])).toBe(true);
});

test("a text outranks a later failure, and no recommendation settles the episode too", () => {
  expect(adviceStatus(spike, [ask(1, "EDGE_TIMEOUT"), ask(5, null)], NOW).state).toBe("present");
  expect(adviceStatus(spike, [ask(5, "NO_RECOMMENDATION")], NOW)).toMatchObject({
    state: "unavailable",
    isDue: false,
  });
});

test("a plan limit keeps the whole zone from being asked for twelve hours, and says why", () => {
  const limited = (minutesAgo: number, over = {}) =>
    ask(minutesAgo, "limit_reached.ai_recommendation", { ruleId: "941100", ...over });
  const status = adviceStatus(spike, [limited(11 * 60)], NOW);
  expect(status).toMatchObject({ state: "unavailable", isDue: false });
  expect(status.reason).toContain("limit_reached.ai_recommendation");
  expect(isDue([limited(12 * 60)])).toBe(true);
  expect(isDue([limited(1, { zoneId: 102 })])).toBe(true);
});

test("an unknown rule blocks asks about that rule only; refused credentials and a wait block every ask", () => {
  const other = { zoneId: 102, ruleId: "941100" };
  expect(isDue([ask(60, "not_found.waf_rule")])).toBe(false);
  expect(isDue([ask(60, "not_found.waf_rule", other)])).toBe(true);
  expect(isDue([ask(14, "EDGE_UNAUTHORIZED", other)])).toBe(false);
  expect(isDue([ask(15, "EDGE_UNAUTHORIZED", other)])).toBe(true);
  expect(isDue([ask(4, "EDGE_RATE_LIMITED.300000", other)])).toBe(false);
  expect(isDue([ask(5, "EDGE_RATE_LIMITED.300000", other)])).toBe(true);
});

test("a wait is no failure of the rule: its advice stays pending", () => {
  expect(adviceStatus(spike, [ask(1, "EDGE_RATE_LIMITED.300000")], NOW).state).toBe("pending");
});

test("failures back off by doubling from one minute up to thirty", () => {
  const failures = (count: number, newest: number) =>
    Array.from({ length: count }, (_, n) => ask(newest + n, "EDGE_UNAVAILABLE"));
  for (const [count, minutes] of [
    [1, 1],
    [2, 2],
    [3, 4],
    [5, 16],
    [6, 30],
    [40, 30],
  ] as const) {
    expect(isDue(failures(count, minutes - 0.5))).toBe(false);
    expect(isDue(failures(count, minutes))).toBe(true);
  }
});

test("a failed ask is unavailable until it is repeated, and an answer resets the count of failures", () => {
  expect(adviceStatus(spike, [ask(0.1, "EDGE_TIMEOUT")], NOW)).toMatchObject({ state: "unavailable" });
  const longAgo = ask(10 * 60, null);
  expect(isDue([ask(1, "EDGE_TIMEOUT"), longAgo, ask(601, "EDGE_TIMEOUT")])).toBe(true);
});

test("an ask in progress is not repeated; an ask without an answer is, after a minute", () => {
  expect(adviceStatus(spike, [ask(0.9, "ASKING")], NOW)).toMatchObject({ state: "pending", isDue: false });
  expect(adviceStatus(spike, [ask(1, "ASKING")], NOW)).toMatchObject({ state: "pending", isDue: true });
});

test("asks count by their time, in whatever order they were read", () => {
  const rows = [ask(40, "EDGE_TIMEOUT"), ask(2, "EDGE_TIMEOUT"), ask(9, null), ask(30, "EDGE_TIMEOUT")];
  for (const read of [rows, rows.toReversed()])
    expect(adviceStatus(spike, read, NOW)).toMatchObject({
      state: "present",
      askedAtMs: NOW - 9 * MINUTE_MS,
    });
  const failed = [ask(40, "EDGE_TIMEOUT"), ask(1, "EDGE_TIMEOUT")];
  expect(isDue(failed)).toBe(false);
  expect(isDue(failed.toReversed())).toBe(false);
});
