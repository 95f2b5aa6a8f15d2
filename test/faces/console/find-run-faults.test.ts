import { expect, test } from "vitest";
import { findRunFaults } from "#faces/console/pages/coverage-page/find-run-faults.ts";

const KNOWN = {
  nowMs: Date.parse("2026-11-20T15:30:00Z"),
  firstHourMs: Date.parse("2026-11-10T00:00:00Z"),
  archived: { firstDay: "2026-11-10", lastDay: "2026-11-12" },
};
type Typed = Parameters<typeof findRunFaults>[0];

function check(kind: Typed["kind"], from: string, to: string, known = {}) {
  const faults = findRunFaults({ kind, from, to }, { ...KNOWN, ...known });
  return Object.fromEntries(Object.entries(faults).filter(([, rule]) => rule !== null));
}

test("a span that the service accepts has no fault", () => {
  expect(check("verify", "2026-11-20T10:00:00Z", "2026-11-20T15:30:00Z")).toEqual({});
  expect(check("backfill", "2026-11-17T17:30:00+02:00", "2026-11-20T15:29Z")).toEqual({});
  expect(check("verify-archive", "2026-11-12T23:00:00Z", "2026-11-20T15:30:00Z")).toEqual({});
  const unknown = { firstHourMs: null };
  expect(check("verify", "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z", unknown)).toEqual({});
});

test.each<[string, Typed["kind"], string, string, object]>([
  ["not a time", "verify", "yesterday", "2026-11-20T15:00:00Z", { from: "ISO 8601" }],
  ["a time without an offset", "verify", "2026-11-20T15:00:00Z", "2026-11-20T15:00:00", { to: "UTC offset" }],
  [
    "an end before the start",
    "backfill",
    "2026-11-20T12:00:00Z",
    "2026-11-20T11:00:00Z",
    { to: "must be after from, 2026-11-20T12:00:00Z" },
  ],
  [
    "an end in the future",
    "verify",
    "2026-11-20T12:00:00Z",
    "2026-11-20T15:31:00Z",
    { to: "must be now (2026-11-20T15:30:00Z) or earlier" },
  ],
  [
    "both ends out of reach",
    "backfill",
    "2026-11-17T15:29:00Z",
    "2026-11-20T16:00:00Z",
    { from: "2026-11-17T15:32:00Z or later", to: "or earlier" },
  ],
  [
    "a span of 32 days",
    "verify",
    "2026-10-19T15:00:00Z",
    "2026-11-20T15:00:00Z",
    { from: "at most 31 days before to, but is 32 days before it" },
  ],
  [
    "a span before the first hour",
    "verify",
    "2026-11-09T00:00:00Z",
    "2026-11-10T00:00:00Z",
    { to: "must be after 2026-11-10T00:00:00Z" },
  ],
  [
    "a span before the archive",
    "verify-archive",
    "2026-11-01T00:00:00Z",
    "2026-11-09T12:00:00Z",
    { to: "must be after 2026-11-10T00:00:00Z, the first archive day" },
  ],
  [
    "a span after the archive",
    "verify-archive",
    "2026-11-13T00:00:00Z",
    "2026-11-14T00:00:00Z",
    { from: "must be before 2026-11-13T00:00:00Z, the end of the last archive day" },
  ],
])("%s is a fault of its field", (_, kind, from, to, expected) => {
  const wanted = Object.entries(expected).map(([field, rule]) => [
    field,
    expect.stringContaining(rule as string) as unknown,
  ]);
  expect(check(kind, from, to)).toEqual(Object.fromEntries(wanted));
});

test("a zone without archive days is a fault of the zone", () => {
  const faults = check("verify-archive", "2026-11-12T00:00:00Z", "2026-11-13T00:00:00Z", { archived: null });
  expect(faults).toEqual({ zone: "has no archive day yet" });
});
