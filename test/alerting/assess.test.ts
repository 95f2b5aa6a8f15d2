import { expect, test } from "vitest";
import { createAssessor } from "#stages/alerting/assess.ts";
import { routeToAll } from "#stages/alerting/routing/routing.ts";
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
