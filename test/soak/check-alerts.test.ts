import { expect, test } from "vitest";
import { type AlertRow, findUnheard } from "./check-alerts.ts";

const AT = Date.UTC(2026, 10, 20, 10);

const alert = (id: number, over: Partial<AlertRow> = {}): AlertRow => ({
  id,
  state: "firing",
  series: `101 ${id}`,
  firedAt: AT,
  leadId: null,
  account: "",
  ...over,
});

const message = (alertId: number) => ({
  id: `message-${alertId}`,
  alertId,
  transition: 1,
  reason: "first",
  ruleId: "942100",
  advice: { state: "none" },
});

const records = (over: Partial<Parameters<typeof findUnheard>[1]> = {}) => ({
  received: [message(1)],
  digested: new Set([2]),
  named: new Map([["101 3", AT]]),
  ...over,
});

test("an alert with a message of its own, in a digest, or named by a group since it fired is heard, and a resolved one need not be", () => {
  const alerts = [alert(1), alert(2), alert(3), alert(4, { state: "resolved" })];

  expect(findUnheard(alerts, records())).toEqual({ unheard: [], explained: 0 });
});

test("an alert without a message, and one that a group named before it fired, are unheard", () => {
  const alerts = [alert(5), alert(3, { firedAt: AT + 1 }), alert(6, { series: null })];

  expect(findUnheard(alerts, records()).unheard).toEqual(alerts);
});

test("an alert without a message is explained by the alert of its incident only if that was heard", () => {
  const [explained, unheard] = [alert(7, { leadId: 1 }), alert(8, { leadId: 9 })];

  expect(findUnheard([explained, unheard], records())).toEqual({ unheard: [unheard], explained: 1 });
});
