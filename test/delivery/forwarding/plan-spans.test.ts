import { expect, test } from "vitest";
import { planSpans } from "#delivery/rules/plan-spans.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";

const HOUR = Date.UTC(2026, 10, 20, 12);
const at = (minute: number) => HOUR + minute * MINUTE_MS;
const plan = (minutes: readonly number[], nowMs: number) =>
  planSpans(
    minutes.map((minute, index) => ({ minute: at(minute), seq: index + 1 })),
    { nowMs, waitMs: 5_000 },
  );

test("adjacent minutes of one hour are one span, in whatever order they changed", () => {
  expect(plan([59, 3, 2, 60], at(70))).toEqual({
    spans: [
      { from: at(2), to: at(4) },
      { from: at(59), to: at(60) },
      { from: at(60), to: at(61) },
    ],
    seq: 4,
  });
});

test("a minute that runs, or ended a moment ago, holds back what changed after it", () => {
  for (const nowMs of [at(10), at(11), at(11) + 4_999])
    expect(plan([2, 10, 3], nowMs)).toEqual({ spans: [{ from: at(2), to: at(3) }], seq: 1 });
  expect(plan([10], at(10)).seq).toBeNull();
  expect(plan([2, 10, 3], at(11) + 5_000).seq).toBe(3);
});

test("an event with a time of the future holds back nothing", () => {
  const minute = 5 * (HOUR_MS / MINUTE_MS);
  const { spans, seq } = plan([minute, 2], at(10));
  expect(seq).toBe(2);
  expect(spans).toContainEqual({ from: at(2), to: at(3) });
  expect(spans).toContainEqual({ from: at(minute), to: at(minute + 1) });
});
