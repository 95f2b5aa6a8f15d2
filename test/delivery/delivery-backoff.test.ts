import { expect, test } from "vitest";
import { planDelivery } from "#delivery/rules/plan-delivery.ts";
import { HOUR_MS } from "#lib/units.ts";

const failed = { disposition: "retry", waitMs: undefined, attempt: 1, ageMs: 0, random: 0.999_999 } as const;

test("the ceiling doubles from 5 s to 15 min and stays there", () => {
  const ceilings = [1, 2, 3, 8, 9, 50, 1e9].map((attempt) => {
    const plan = planDelivery({ ...failed, attempt });
    return plan.kind === "again" ? Math.round(plan.delayMs / 1_000) : null;
  });
  expect(ceilings).toEqual([5, 10, 20, 640, 900, 900, 900]);
});

test("the jitter is full, down to a second", () => {
  expect(planDelivery({ ...failed, attempt: 8, random: 0.5 })).toEqual({ kind: "again", delayMs: 320_000 });
  expect(planDelivery({ ...failed, attempt: 8, random: 0 })).toEqual({ kind: "again", delayMs: 1_000 });
});

test.each([
  [90_000, 90_000],
  [0, 1_000],
  [86_400_000, HOUR_MS],
  [Number.POSITIVE_INFINITY, HOUR_MS],
])(
  "a requested wait of %d ms becomes %d ms, whatever the attempt and the random number",
  (waitMs, delayMs) => {
    const plan = planDelivery({ ...failed, disposition: "wait", waitMs, attempt: 9 });
    expect(plan).toEqual({ kind: "again", delayMs });
  },
);

test("a wait that says no time backs off", () => {
  expect(planDelivery({ ...failed, disposition: "wait" })).toEqual({ kind: "again", delayMs: 4_999 });
});

test("a refused message and a message older than three days are given up", () => {
  expect(planDelivery({ ...failed, disposition: "give-up" })).toEqual({
    kind: "give-up",
    because: "refused",
  });
  expect(planDelivery({ ...failed, ageMs: 72 * HOUR_MS })).toMatchObject({ kind: "again" });
  expect(planDelivery({ ...failed, ageMs: 72 * HOUR_MS + 1 })).toEqual({
    kind: "give-up",
    because: "too old",
  });
});
