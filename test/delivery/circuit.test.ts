import fc from "fast-check";
import { expect, test } from "vitest";
import { afterAttempts, type Circuit, closeCircuit, describeCircuit } from "../../src/delivery/circuit.ts";

const failed = (nowMs: number, count = 1) => ({
  nowMs,
  succeeded: 0,
  failed: count,
  isGone: false,
  lastError: "ENDPOINT_TIMEOUT: late",
});
const taken = (nowMs: number) => ({ ...failed(nowMs, 3), succeeded: 1 });
const repeat = (from: Circuit, times: number) => {
  let circuit = from;
  for (let time = 0; time < times; time += 1) circuit = afterAttempts(circuit, failed(circuit.retryAtMs));
  return circuit;
};

test("four failures in a row are the messages', the fifth is the channel's", () => {
  expect(repeat(closeCircuit(0), 4).state).toBe("closed");
  expect(repeat(closeCircuit(0), 5)).toMatchObject({ state: "open", openedAtMs: 0, retryAtMs: 30_000 });
});

test("every probe that fails doubles the pause, up to five minutes", () => {
  const pauses = [5, 6, 7, 8, 9, 10, 11].map((failures) => {
    const circuit = repeat(closeCircuit(0), failures);
    return (circuit.retryAtMs - repeat(closeCircuit(0), failures - 1).retryAtMs) / 1_000;
  });
  expect(pauses).toEqual([30, 60, 120, 240, 300, 300, 300]);
});

test("open turns half-open when its pause is over, in whatever word it is shown", () => {
  const open = repeat(closeCircuit(0), 5);
  expect([29_999, 30_000].map((nowMs) => describeCircuit(open, nowMs))).toEqual(["open", "half-open"]);
  expect(describeCircuit(closeCircuit(0), 0)).toBe("closed");
});

test("one message that is taken closes it, whatever failed beside it", () => {
  expect(afterAttempts(repeat(closeCircuit(0), 9), taken(7))).toEqual(closeCircuit(7));
});

test("gone is for good: neither success nor failure of what was under way opens or closes it", () => {
  const gone = afterAttempts(closeCircuit(0), { ...taken(5), isGone: true });
  expect(gone).toMatchObject({ state: "disabled", openedAtMs: 5 });
  expect(afterAttempts(gone, taken(6))).toEqual(gone);
  expect(afterAttempts(gone, failed(6))).toEqual(gone);
});

test("however attempts end, an open circuit lets a probe through within five minutes", () => {
  const ends = fc.array(fc.record({ succeeded: fc.nat(2), failed: fc.nat(4) }), { maxLength: 60 });
  fc.assert(
    fc.property(ends, (sequence) => {
      let circuit = closeCircuit(0);
      for (const [nowMs, end] of sequence.entries()) {
        circuit = afterAttempts(circuit, { ...end, nowMs, isGone: false, lastError: null });
        expect(circuit.retryAtMs - nowMs).toBeLessThanOrEqual(300_000);
        expect(end.succeeded > 0 && circuit.state !== "closed").toBe(false);
      }
    }),
  );
});
