import fc from "fast-check";
import { expect, test } from "vitest";
import { episodeKeyOf, notificationKeyOf } from "#model/dedupe-key.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import type { GroupLabel } from "#model/kinds.ts";
import { groupKeyOf } from "#stages/alerting/group.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { DEFAULT_TIMING } from "#stages/alerting/routing/routing.ts";

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

test("a notification's key is short, free of dots and different for every episode, transition and channel", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.nat(), (channel, transition) => {
      const episode = episodeKeyOf({ fingerprint: fingerprintOf(subject), firedAtMs: 1 });
      const key = notificationKeyOf(episode, transition, channel);
      expect(key).toMatch(/^[\w-]{1,110}$/);
      expect(key).not.toBe(notificationKeyOf(episode, transition + 1, channel));
      expect(key).not.toBe(notificationKeyOf(episode, transition, `${channel}x`));
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

test("quiet hours and the order of routes make no other group, another place or another subject does", () => {
  const key = (channels: string[], held: string[], groupBy: GroupLabel[] = ["zone"], over = {}) => {
    const timing = { ...DEFAULT_TIMING, groupBy };
    return groupKeyOf({ timing, channels, held, repeatIntervalMs: new Map() }, { ...subject, ...over });
  };
  expect(key(["chat", "pager"], [])).toBe(key(["pager", "chat"], []));
  expect(key(["pager"], ["chat"])).toBe(key(["chat"], ["pager"]));
  expect(key(["chat"], [])).not.toBe(key(["chat", "pager"], []));
  expect(key(["chat"], [])).not.toBe(key(["chat"], [], ["zone"], { zoneId: 102 }));
  expect(key(["chat"], [])).toBe(key(["chat"], [], ["zone"], { ruleId: "1" }));
  expect(key(["chat"], [], ["rule"])).not.toBe(key(["chat"], [], ["rule"], { ruleId: "1" }));
  expect(key(["chat"], [], ["rule"])).toBe(key(["chat"], [], ["rule"], { zoneId: 102 }));
  expect(key(["chat"], [], ["zone", "rule"])).toBeNull();
});
