import fc from "fast-check";
import { expect, test } from "vitest";
import { afterAttempts, type Circuit, closeCircuit, describeCircuit } from "#delivery/rules/plan-delivery.ts";
import type { ChannelKind } from "#model/kinds.ts";
import { capabilitiesOf } from "./support/capabilities.ts";

const longestPauseOf = (kind: ChannelKind) => capabilitiesOf(kind).longestPauseMs;

const failed = (nowMs: number, count = 1, kind: ChannelKind = "email") => ({
  longestPauseMs: longestPauseOf(kind),
  nowMs,
  succeeded: 0,
  failed: count,
  isGone: false,
  lastError: "ENDPOINT_TIMEOUT: late",
});
const taken = (nowMs: number) => ({ ...failed(nowMs, 3), succeeded: 1 });
const repeat = (from: Circuit, times: number, kind?: ChannelKind) => {
  let circuit = from;
  for (let time = 0; time < times; time += 1)
    circuit = afterAttempts(circuit, failed(circuit.retryAtMs, 1, kind));
  return circuit;
};

test("four failures in a row are the messages', the fifth is the channel's", () => {
  expect(repeat(closeCircuit(0), 4).state).toBe("closed");
  expect(repeat(closeCircuit(0), 5)).toMatchObject({ state: "open", openedAtMs: 0, retryAtMs: 30_000 });
});

test("every probe that fails doubles the pause: up to a minute for pagers, two for chats, five for mail", () => {
  const pausesOf = (kind: ChannelKind) =>
    [5, 6, 7, 8, 9, 10].map((failures) => {
      const circuit = repeat(closeCircuit(0), failures, kind);
      return (circuit.retryAtMs - repeat(closeCircuit(0), failures - 1, kind).retryAtMs) / 1_000;
    });
  for (const pager of [
    "pagerduty",
    "opsgenie",
    "jira-service-management",
    "alertmanager",
    "webhook",
    "terminal",
  ] as const)
    expect([pager, pausesOf(pager)]).toEqual([pager, [30, 60, 60, 60, 60, 60]]);
  for (const chat of [
    ...(["slack", "slack-bot", "teams", "discord"] as const),
    ...(["mattermost", "google-chat", "telegram", "ntfy", "pushover"] as const),
  ])
    expect([chat, pausesOf(chat)]).toEqual([chat, [30, 60, 120, 120, 120, 120]]);
  expect(pausesOf("email")).toEqual([30, 60, 120, 240, 300, 300]);
});

test("a channel that is dead for a day is asked once per pause and no oftener", () => {
  for (const kind of ["pagerduty", "slack", "email"] as const) {
    let circuit = repeat(closeCircuit(0), 5, kind);
    let probes = 0;
    for (; circuit.retryAtMs < 86_400_000; probes += 1)
      circuit = afterAttempts(circuit, failed(circuit.retryAtMs, 1, kind));
    expect(probes).toBeLessThanOrEqual(86_400_000 / longestPauseOf(kind) + 3);
    expect(probes).toBeGreaterThanOrEqual(86_400_000 / longestPauseOf(kind) - 3);
  }
});

test("an open circuit is half-open when its pause is over, also in its description", () => {
  const open = repeat(closeCircuit(0), 5);
  expect([29_999, 30_000].map((nowMs) => describeCircuit(open, nowMs))).toEqual(["open", "half-open"]);
  expect(describeCircuit(closeCircuit(0), 0)).toBe("closed");
});

test("one accepted message closes the circuit, whatever else failed", () => {
  expect(afterAttempts(repeat(closeCircuit(0), 9), taken(7))).toEqual(closeCircuit(7));
});

test("a disabled circuit stays disabled, whatever the attempts in progress return", () => {
  const gone = afterAttempts(closeCircuit(0), { ...taken(5), isGone: true });
  expect(gone).toMatchObject({ state: "disabled", openedAtMs: 5 });
  expect(afterAttempts(gone, taken(6))).toEqual(gone);
  expect(afterAttempts(gone, failed(6))).toEqual(gone);
});

test("however attempts end, an open circuit lets a probe through within its kind's longest pause", () => {
  const ends = fc.array(fc.record({ succeeded: fc.nat(2), failed: fc.nat(4) }), { maxLength: 60 });
  fc.assert(
    fc.property(fc.constantFrom<ChannelKind[]>("pagerduty", "slack", "email"), ends, (kind, sequence) => {
      let circuit = closeCircuit(0);
      for (const [nowMs, end] of sequence.entries()) {
        const longestPauseMs = longestPauseOf(kind);
        circuit = afterAttempts(circuit, { ...end, longestPauseMs, nowMs, isGone: false, lastError: null });
        expect(circuit.retryAtMs - nowMs).toBeLessThanOrEqual(longestPauseMs);
        expect(end.succeeded > 0 && circuit.state !== "closed").toBe(false);
      }
    }),
  );
});
