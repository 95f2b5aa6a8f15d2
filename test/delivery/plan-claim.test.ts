import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChannelRate } from "#delivery/receivers/channel-definition.ts";
import { type ChannelState, closeCircuit, planClaim, spend } from "#delivery/rules/plan-delivery.ts";

const digesting: ChannelRate = { perMinute: 20, digest: { in: "headline", maxChars: 200, charsBeside: 2 } };
const plain: ChannelRate = { perMinute: 20, digest: null };
const state = (over: Partial<ChannelState> = {}): ChannelState => ({
  ...closeCircuit(0),
  spentUntilMs: 0,
  ...over,
});

test("a disabled channel is sent nothing, and a channel with an open circuit a probe when it is due", () => {
  expect(planClaim(state({ state: "disabled" }), plain, 10)).toEqual({ kind: "nothing" });
  expect(planClaim(state({ state: "open", retryAtMs: 11 }), plain, 10)).toEqual({ kind: "nothing" });
  expect(planClaim(state({ state: "open", retryAtMs: 10 }), plain, 10)).toEqual({ kind: "probe" });
});

test("times that were written while the database's clock was a day ahead silence no channel", () => {
  const day = 86_400_000;
  expect(planClaim(state({ state: "open", retryAtMs: day }), plain, 0)).toEqual({ kind: "probe" });
  expect(planClaim(state({ spentUntilMs: day }), plain, 0)).toEqual({ kind: "alone", atMost: 20 });
  expect(spend(day, plain, 1, 0)).toBe(3_000);
});

test("after a minute without messages the whole rate may be used at once, a quarter of it for digests", () => {
  expect(planClaim(state(), plain, 0)).toEqual({ kind: "alone", atMost: 20 });
  expect(planClaim(state(), digesting, 0)).toEqual({ kind: "alone", atMost: 15 });
  const spentUntilMs = spend(0, digesting, 15, 0);
  expect(planClaim(state({ spentUntilMs }), digesting, 0)).toEqual({ kind: "together" });
  const empty = spend(spentUntilMs, digesting, 5, 0);
  expect(planClaim(state({ spentUntilMs: empty }), digesting, 0)).toEqual({ kind: "nothing" });
  expect(planClaim(state({ spentUntilMs: empty }), digesting, 3_000)).toEqual({ kind: "together" });
});

test("no minute sees more than twice the rate, and a long time no more than the rate", () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(pauses, fc.constantFrom(plain, digesting), (sequence, rate) => {
      let nowMs = 0;
      let spentUntilMs = 0;
      const sent: number[] = [];
      for (const pause of sequence) {
        nowMs += pause;
        const plan = planClaim(state({ spentUntilMs }), rate, nowMs);
        const count = plan.kind === "alone" ? plan.atMost : plan.kind === "together" ? 1 : 0;
        spentUntilMs = spend(spentUntilMs, rate, count, nowMs);
        sent.push(...Array.from({ length: count }, () => nowMs));
      }
      for (const from of sent) {
        expect(sent.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(40);
      }
      expect(sent.length).toBeLessThanOrEqual(20 + Math.ceil((nowMs * 20) / 60_000));
    }),
  );
});
