import { expect, test } from "vitest";
import { createSenderHistory } from "#alerts/rules/backtest/replay-history.ts";
import { HOUR_MS } from "#lib/units.ts";

const addressOf = (index: number) => `203.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;

test("a flood of senders ends within the test's time, and a sender from before it stays known", () => {
  const history = createSenderHistory();
  for (let event = 0; event < 5; event += 1) history.take("192.0.2.1", "942100", HOUR_MS);
  // Every sender beyond the first 200,000 once had all of them looked through.
  for (let index = 0; index < 230_000; index += 1)
    history.take(addressOf(index), "942100", 2 * HOUR_MS + index);

  const senders = ["192.0.2.1", addressOf(0), addressOf(229_999)];
  expect(history.read(senders, "942100", 3 * HOUR_MS)).toEqual(
    new Map([
      ["192.0.2.1", 5],
      [addressOf(0), 1],
    ]),
  );
  expect(history.perHour("942100", 3 * HOUR_MS)).toBe(230_005 / 24);
});
