import { expect, test } from "vitest";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { createDraw } from "../bench/sources/draw.ts";
import { drawZone } from "../bench/sources/draw-zone.ts";
import { START_MINUTE } from "../bench/sources/zone.ts";
import { SEED } from "../support/random-tests.ts";
import { draws } from "../support/sample.ts";

const seed = SEED % 100_000;
const { events } = drawZone(seed, 5);

function replay(late: { from: number; to: number } | null): ReplayedMessage[] {
  const one = createZoneReplay({ z: 3.5, floor: 10, fewAddresses: 3, late });
  for (const event of events) one.take(event, event.minute);
  return one.finish();
}

const namesOf = (messages: readonly ReplayedMessage[]) => [
  ...new Set(
    messages.flatMap(({ attackers, rules }) => [
      ...attackers.map(({ kind, key }) => `${kind}=${key}`),
      ...rules.map((rule) => `rule ${rule}`),
    ]),
  ),
];

test("late minutes make one message, and every other message is that of the complete replay", () => {
  const whole = replay(null);
  const draw = createDraw(seed);
  for (let i = 0; i < draws(5, 8); i += 1) {
    // Around a message, because most spans have none.
    const around = draw.pick(whole.filter(({ reason }) => reason === "first")).at;
    const from = Math.max(around - draw.integer(1, 90), START_MINUTE + 1_500);
    const to = from + draw.integer(20, 240);
    const late = replay({ from, to });
    const withoutNumber = (all: readonly ReplayedMessage[]) =>
      all.map(({ incident: _number, ...rest }) => rest);
    const before = whole.filter(({ at }) => at <= from);
    expect(late.filter(({ at }) => at <= from)).toEqual(before);
    expect(late.filter(({ at }) => at > from && at < to)).toEqual([]);
    const told = late.filter(({ reason }) => reason === "late");
    expect(told.length).toBeLessThanOrEqual(1);
    for (const message of told)
      expect(message).toMatchObject({ at: to, severity: "info", subject: "incident" });
    // Whoever was named in the span is named in the late message, or was named before it.
    const named = new Set([...namesOf(told), ...namesOf(before)]);
    const inSpan = whole.filter(({ at, reason }) => at > from && at <= to && reason !== "resolved");
    for (const name of namesOf(inSpan)) expect(named).toContain(name);
    // What opens after the span is told as if there had been none.
    const opened = (all: readonly ReplayedMessage[]) =>
      withoutNumber(all.filter(({ at, reason }) => reason === "first" && at > to + 240));
    expect(opened(late)).toEqual(opened(whole));
  }
});
