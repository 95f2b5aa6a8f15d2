import { expect, test } from "vitest";
import { formatTime } from "#delivery/rules/message/describe-alert.ts";
import { parseTime } from "#faces/cli/edge/flag-reader.ts";
import { formatUtc } from "#faces/console/style/words.ts";
import { showIso, showTime } from "#lib/format.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { Time } from "#operations/fields.ts";

const NOW = Date.UTC(2026, 10, 28, 4, 5, 6, 789);
const MINUTE = Date.UTC(2026, 10, 27, 20, 51);

/** Every form in which a time is printed, with the unit to which it is cut. */
const PRINTED: readonly [name: string, print: (at: number) => string, unit: number][] = [
  ["ISO 8601", (at) => new Date(at).toISOString(), 1],
  ["showTime", showTime, 1_000],
  ["showTime with UTC", (at) => `${showTime(at)} UTC`, 1_000],
  ["showTime of an ISO time", (at) => showTime(new Date(at).toISOString()), 1_000],
  ["the console", formatUtc, 1_000],
  ["messages", formatTime, MINUTE_MS],
  ["commands and addresses", showIso, 1_000],
  ["psql", (at) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}+00:00`, 1_000],
  ["a day", (at) => new Date(at).toISOString().slice(0, 10), DAY_MS],
  ["epoch ms", String, 1],
];

test.each(PRINTED)("a time as %s prints it is accepted as input", (_name, print, unit) => {
  for (const at of [MINUTE, MINUTE + 7_000, MINUTE + 7_123, Date.UTC(2026, 10, 27)])
    expect([print(at), parseTime(print(at), NOW)]).toEqual([print(at), at - (at % unit)]);
});

test.each([
  ["2026-11-27 20:51 UTC", MINUTE],
  ["2026-11-27 20:51:07 UTC", MINUTE + 7_000],
  ["2026-11-27T20:51:07.5Z", MINUTE + 7_500],
  ["2026-11-27 22:51+02:00", MINUTE],
])("the API accepts %s", (text, at) => expect(Time.parse(text)).toBe(at));

test.each(["2026-11-27 20:51", "2026-02-30 20:51 UTC", "yesterday", "UTC"])("the API refuses %s", (text) => {
  expect(Time.safeParse(text).success).toBe(false);
});

test.each([
  ["now", NOW],
  ["today", Date.UTC(2026, 10, 28)],
  ["yesterday", Date.UTC(2026, 10, 27)],
  ["-1.5h", NOW - 1.5 * HOUR_MS],
  ["-1h30m", NOW - 1.5 * HOUR_MS],
  ["+0.5d", NOW + 12 * HOUR_MS],
  ["-1w", NOW - 7 * DAY_MS],
  [" 2026-11-27 20:51 ", MINUTE],
  ["2026-11-27 22:51+0200", MINUTE],
])("%s is a time", (text, at) => expect(parseTime(text, NOW)).toBe(at));

test.each([
  "2026-02-30",
  "2026-11-27 25:00",
  "2026-11-27 20",
  "1.5h",
  "-h",
  "-1.5",
  "tomorrow",
  "1764276660",
  "",
])("%j is no time", (text) => expect(parseTime(text, NOW)).toBeNull());
