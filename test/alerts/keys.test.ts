import fc from "fast-check";
import { expect, test } from "vitest";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { episodeKeyOf, fingerprintOf, notificationKeyOf } from "#model/fingerprint.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";

const subject = { kind: "spike", zoneId: 101, ruleId: "942100" };

test("a fingerprint is that of its subject and of no other", () => {
  expect(fingerprintOf({ ...subject })).toBe(fingerprintOf(subject));
  const others = [
    { ...subject, zoneId: 102 },
    { ...subject, ruleId: "942101" },
    { ...subject, ruleId: null },
    { ...subject, kind: "self" },
    { kind: "spike", zoneId: 10, ruleId: '1,"942100' },
  ];
  expect(new Set([subject, ...others].map(fingerprintOf)).size).toBe(6);
});

test("a new rule that grows into a spike stays the same subject", () => {
  expect(fingerprintOf({ ...subject, kind: "new-rule" })).toBe(fingerprintOf(subject));
});

test("a notification's key is short, free of dots and different for every episode, transition, reason and channel", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.nat(), (channel, transition) => {
      const dedupeKey = episodeKeyOf({ fingerprint: fingerprintOf(subject), firedAtMs: 1 });
      const worse = { dedupeKey, transition, reason: "worse" } as const;
      const key = notificationKeyOf(worse, channel);
      expect(key).toMatch(/^[\w-]{1,125}$/);
      expect(key).not.toBe(notificationKeyOf({ ...worse, transition: transition + 1 }, channel));
      expect(key).not.toBe(notificationKeyOf({ ...worse, reason: "resolved" }, channel));
      expect(key).not.toBe(notificationKeyOf(worse, `${channel}x`));
    }),
  );
  const fingerprint = fingerprintOf(subject);
  expect(episodeKeyOf({ fingerprint, firedAtMs: 1 })).not.toBe(episodeKeyOf({ fingerprint, firedAtMs: 2 }));
});

test.each([
  ["942100", "SQL injection"],
  ["944150", "Java attack (Log4j included)"],
  ["949110", "Inbound anomaly score"],
  ["999999", null],
  ["1048576", null],
  ["9421", null],
  ["942100 ", null],
  ["", null],
  [null, null],
])("rule %s is about %s", (ruleId, title) => {
  expect(ruleTitle(ruleId)).toBe(title);
});

test("every incident of a zone has a fingerprint of its own, and no rule has one of them", () => {
  const incident = { kind: "sources", zoneId: 101, ruleId: SOURCES_RULE };
  const subjects = [
    { ...incident, incident: "1.1" },
    { ...incident, incident: "1.2" },
    { ...incident, zoneId: 102, incident: "1.1" },
    // One that an earlier version opened has no name.
    incident,
    { kind: "spike", zoneId: 101, ruleId: "1.1" },
  ];
  expect(new Set(subjects.map(fingerprintOf)).size).toBe(5);
  expect(fingerprintOf(incident)).toBe(fingerprintOf({ ...incident, kind: "spike" }));
});
