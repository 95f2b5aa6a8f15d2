import { expect, test } from "vitest";
import { createAssessor } from "#alerts/rules/assess.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { verdictOf } from "../support/stored-verdict.ts";
import { alertSpike, NOW } from "./support.ts";

const context = {
  nowMs: NOW,
  routing: routeToAll(["chat"]),
  asks: [],
  silences: [],
  firing: [],
  incidents: new Set<number>(),
};

test("an assessor assesses a spike once, also when the spike is read again", () => {
  const assess = createAssessor(context);
  expect(assess(structuredClone(alertSpike()))).toBe(assess(alertSpike()));
});

test("an assessor assesses a spike again if the spike has changed", () => {
  const assess = createAssessor(context);
  expect(assess(alertSpike()).spike.severity).toBe("warning");
  expect(assess(alertSpike({ severity: "critical" })).spike.severity).toBe("critical");
});

const HOUR = 60;

test.each<[string, number, Parameters<typeof alertSpike>[0], number, boolean]>([
  ["a new rule of its zone's first day", 20 * HOUR, { kind: "new-rule" }, 19, true],
  ["a rule of its zone's first two hours", HOUR, {}, 19, true],
  ["a rule of its zone's third hour", 3 * HOUR, {}, 19, false],
  ["a new rule of its zone's second day", 25 * HOUR, { kind: "new-rule" }, 19, false],
  ["an incident of its zone's first day", HOUR, { kind: "sources" }, 19, false],
  ["a new rule that stops twenty requests", HOUR, { kind: "new-rule" }, 20, false],
])("%s is only listed or not", (_what, age, over, blocked, expected) => {
  const spike = alertSpike(over);
  const { counts, ...verdict } = verdictOf({ odds: 0.89 });
  const assess = createAssessor({
    ...context,
    firstMinutes: new Map([[spike.zoneId, NOW / MINUTE_MS - age]]),
    verdicts: new Map([
      [spike.id, [{ ...verdict, counts: { ...counts, blocked, hostile: 12, hostileThrough: 9 } }]],
    ]),
  });
  expect(assess(spike).isUntried).toBe(expected);
});

test.each<[string, number, Parameters<typeof alertSpike>[0], string]>([
  ["a rule of its zone's first two hours", HOUR, {}, "warning"],
  ["a rule of its zone's third hour", 3 * HOUR, {}, "critical"],
  ["an incident of its zone's first two hours", HOUR, { kind: "sources" }, "critical"],
])("%s pages or not", (_what, age, over, expected) => {
  const spike = alertSpike({ severity: "critical", ...over });
  const firstMinutes = new Map([[spike.zoneId, NOW / MINUTE_MS - age]]);
  const assess = createAssessor({ ...context, firstMinutes });
  expect(assess(spike).spike.severity).toBe(expected);
  expect(assess(structuredClone(spike))).toBe(assess(spike));
});
