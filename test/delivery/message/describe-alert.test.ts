import { expect, test } from "vitest";
import {
  describeActions,
  describeBriefly,
  describeCourse,
  describeEnd,
  describeSubject,
} from "#delivery/rules/message/describe-alert.ts";
import { incidentWith, messageOf, sourcesMessage } from "../support/messages.ts";

test("the action states its number of events if it differs from the count", () => {
  expect(describeActions(messageOf())).toBe("blocked 700 · logged 147");
  expect(describeActions(messageOf({ count: 90 }))).toBe("of 847 events: blocked 700 · logged 147");
  const none = { blocked: 0, logged: 0, challenged: 0, other: 0 };
  expect(describeActions(messageOf({ actions: none }))).toBe("");
});

test("an alert is named by its number, and a message without an alert has none", () => {
  expect(describeCourse(messageOf())).toMatch(/^alert 7 · since /);
  expect(describeCourse(messageOf({ alertId: 0 }))).toMatch(/^since /);
  expect(describeCourse(messageOf({ digest: [] }))).toMatch(/^since /);
});

test("an incident is called one, with the name of its zone and without the id that stands for all rules", () => {
  expect(describeSubject(incidentWith(5))).toBe("zone 101 · incident");
  expect(describeSubject(sourcesMessage({ zoneName: "shop" }))).toBe("zone 101 (shop) · incident");
});

test("a headline that names its rule is used alone, and another is followed by its subject", () => {
  const headline = "rule 942100 in zone 101 is back to normal";
  expect(describeBriefly(messageOf({ headline }))).toBe(headline);
  for (const message of [incidentWith(5), sourcesMessage()])
    expect(describeBriefly(message)).toBe(message.headline);
  // Both are blank once they are made harmless, and something has to be read out.
  for (const blank of ["", " ", "\n", "\ufe0f"])
    expect(describeBriefly(messageOf({ ruleId: blank, headline: blank }))).toMatch(/^zone 101 /);
  expect(describeBriefly(messageOf({ ruleId: "", ruleTitle: null, headline: "much" }))).toBe(
    "zone 101: much",
  );
});

test("a resolved message has the time range and the peak; about Longwatch itself it has only the time range", () => {
  const startedAt = Date.UTC(2026, 10, 21, 14, 3);
  const ended = { state: "resolved", reason: "resolved", startedAt } as const;
  const end = (minutes: number, over = {}) =>
    describeEnd(messageOf({ ...ended, endedAt: startedAt + minutes * 60_000, ...over }));
  expect(end(23, { peak: 912, windowMinutes: 5 })).toBe(
    "after 23 min (2026-11-21 14:03 UTC to 14:26 UTC), peak 912 in 5 min",
  );
  expect(end(23, { kind: "self" })).toBe("after 23 min (2026-11-21 14:03 UTC to 14:26 UTC)");
  expect(end(1_440, { kind: "self" })).toBe("after 1 d (2026-11-21 14:03 UTC to 2026-11-22 14:03 UTC)");
});
