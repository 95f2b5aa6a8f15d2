import { describe, expect, test } from "vitest";
import { type AlertRecord, type Mute, NOBODY, nextAlert } from "#alerts/rules/alert-record.ts";
import { type AlertSpike, isSettled } from "#alerts/rules/alert-spike.ts";
import { alertOf, endTogether, findDeciding, findTakeOvers } from "#alerts/rules/decide-all.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { CHANGE_KINDS } from "#model/kinds.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { alertSpike, NOW } from "./support.ts";

const minutes = (count: number) => NOW + count * MINUTE_MS;
const rule = (id: number, over: Partial<AlertSpike> = {}) =>
  alertSpike({ id, ruleId: `94${id}100`, ...over });
const incident = (id: number, over: Partial<AlertSpike> = {}) =>
  alertSpike({ id, kind: "sources", ruleId: SOURCES_RULE, incident: `1.${id}`, ...over });

describe("the ends of spikes", () => {
  const OVER = { closedAtMs: minutes(30) };
  const OF_ONE = { memberOf: 1 };
  /** When each spike ends, by its id; null if it goes on. */
  const endsOf = (...spikes: AlertSpike[]) =>
    endTogether(spikes, minutes(40)).map(({ closedAtMs }) => closedAtMs && (closedAtMs - NOW) / MINUTE_MS);

  test.each<[string, AlertSpike[], (number | null)[]]>([
    ["a spike alone goes on while it is open", [rule(1)], [null]],
    ["a spike alone ends when it closes", [rule(1, OVER)], [30]],
    ["a member goes on while its incident does", [incident(1), rule(2, OF_ONE)], [null, null]],
    ["an open member ends when its incident closes", [incident(1, OVER), rule(2, OF_ONE)], [30, 30]],
    [
      "a member that closed before its incident keeps its own end",
      [incident(1, OVER), rule(2, { ...OF_ONE, closedAtMs: minutes(20) })],
      [30, 20],
    ],
    [
      "an incident ends although a member is open",
      [incident(1, OVER), rule(2, OF_ONE), rule(3, OF_ONE)],
      [30, 30, 30],
    ],
    ["a lead that is a rule goes on while a member is open", [rule(1, OVER), rule(2, OF_ONE)], [null, null]],
    [
      "a lead that is a rule ends when its last member closes",
      [rule(1, OVER), rule(2, { ...OF_ONE, closedAtMs: minutes(35) })],
      [30, 35],
    ],
    ["a member whose lead is not among the spikes has ended", [rule(2, OF_ONE)], [40]],
    [
      "a member that closed keeps its end although its lead is not among the spikes",
      [rule(2, { ...OF_ONE, ...OVER })],
      [30],
    ],
  ])("%s", (_what, spikes, expected) => {
    expect(endsOf(...spikes)).toEqual(expected);
  });
});

test("the members of a rule that an incident adopts are the incident's, and end with it", () => {
  const read = [
    incident(1, { closedAtMs: minutes(30) }),
    rule(2, { memberOf: 1 }),
    rule(3, { memberOf: 2 }),
    rule(4, { memberOf: 9 }),
  ];
  const found = endTogether(read, minutes(40)).map(({ memberOf, closedAtMs }) => [memberOf, closedAtMs]);
  expect(found).toEqual([
    [undefined, minutes(30)],
    [1, minutes(30)],
    [1, minutes(30)],
    [9, minutes(40)],
  ]);
});

test("only a rule that holds its own alert settles", () => {
  const closed = { closedAtMs: minutes(30), windowCount: 50, threshold: 10 };
  expect(isSettled(rule(1, closed))).toBe(true);
  expect(isSettled(rule(1, { ...closed, kind: "new-rule" }))).toBe(true);
  expect(isSettled(rule(1, { ...closed, closedAtMs: null }))).toBe(false);
  expect(isSettled(rule(1, { ...closed, memberOf: 2 }))).toBe(false);
  for (const kind of ["sources", ...CHANGE_KINDS] as const)
    expect(isSettled(rule(1, { ...closed, kind }))).toBe(false);
});

/** An alert that fired at a minute and was sent to these channels. */
function recordOf(at: number, channels: readonly string[] = ["chat"], mute?: Mute): AlertRecord {
  const occurrence = { id: 2, severity: "warning", openedAtMs: minutes(at) } as const;
  const recipients = { ...NOBODY, notified: channels };
  return nextAlert(null, {
    reason: "first",
    occurrence,
    recipients,
    nowMs: minutes(at),
    ...(mute && { mute }),
  });
}

describe("an incident takes over the alert", () => {
  const [two, three] = [rule(2, { memberOf: 1 }), rule(3, { memberOf: 1 })];
  const find = (spike: AlertSpike, records: ReadonlyMap<AlertSpike, AlertRecord>) =>
    findTakeOvers([spike, two, three], (one) => records.get(one) ?? null)[0]?.member ?? null;

  test("of a rule that only adds others up, by the rule that holds its requests", () => {
    const sum = rule(2, { memberOf: 1, ruleId: "949110" });
    const recordOfSum = (one: AlertSpike) => (one === sum || one === two ? recordOf(5) : null);
    const takenBy = (lead: AlertSpike) => findTakeOvers([lead, sum], recordOfSum).map(({ member }) => member);
    expect(takenBy(rule(1))).toEqual([sum]);
    expect(takenBy(rule(1, { closedAtMs: minutes(1) }))).toEqual([]);
    expect(findTakeOvers([rule(1), two], recordOfSum)).toEqual([]);
  });

  test("of the member that was notified first", () => {
    expect(
      find(
        incident(1),
        new Map([
          [two, recordOf(5)],
          [three, recordOf(4)],
        ]),
      ),
    ).toBe(three);
    expect(
      find(
        incident(1),
        new Map([
          [two, recordOf(3)],
          [three, recordOf(4)],
        ]),
      ),
    ).toBe(two);
  });

  test("of no member without an alert, without a notification, or with an end", () => {
    const muted = recordOf(1, [], { silencedBy: 3, mutedBy: null });
    const ended: AlertRecord = { ...recordOf(1), state: "resolved", resolvedAtMs: minutes(3) };
    expect(find(incident(1), new Map())).toBeNull();
    expect(
      find(
        incident(1),
        new Map([
          [two, muted],
          [three, ended],
        ]),
      ),
    ).toBeNull();
    expect(
      find(
        incident(1),
        new Map([
          [two, muted],
          [three, recordOf(9)],
        ]),
      ),
    ).toBe(three);
  });

  test("of an acknowledged member", () => {
    expect(find(incident(1), new Map([[two, { ...recordOf(1), state: "acknowledged" }]]))).toBe(two);
  });

  test("only while it is open, and only as an incident", () => {
    const records = new Map([[two, recordOf(1)]]);
    expect(find(incident(1, { closedAtMs: minutes(9) }), records)).toBeNull();
    expect(find(rule(1), records)).toBeNull();
  });
});

describe("the spike that decides about an alert", () => {
  const fingerprint = fingerprintOf(rule(2));
  const taker = (over: Partial<AlertSpike> = {}) => incident(5, { takesOver: fingerprint, ...over });
  const OVER = { closedAtMs: minutes(30) };
  const again = (id: number, over: Partial<AlertSpike> = {}) => rule(id, { ruleId: rule(2).ruleId, ...over });

  test("is its own one without an incident", () => {
    expect(findDeciding([rule(2), rule(3), incident(5)]).map(({ id }) => id)).toEqual([2, 3, 5]);
    expect([alertOf(rule(2)), alertOf(taker())]).toEqual([fingerprint, fingerprint]);
  });

  test.each<[string, AlertSpike[], number]>([
    ["is the incident that took it over", [rule(2, { memberOf: 5 }), taker()], 5],
    ["is the incident that took it over, once it has ended", [rule(2, { memberOf: 5 }), taker(OVER)], 5],
    ["is the open incident although the rule spikes anew", [again(7), taker()], 5],
    ["is the next spike of the rule after the incident", [again(7), taker(OVER)], 7],
    ["is the next spike of the rule after it closed, too", [again(7, OVER), taker(OVER)], 7],
    [
      "is not the next spike of the rule if that is part of the incident",
      [again(7, { memberOf: 5 }), taker(OVER)],
      5,
    ],
    ["is the latest of two incidents", [taker(OVER), incident(8, { takesOver: fingerprint })], 8],
    [
      "is the next spike of the rule after two incidents",
      [taker(OVER), incident(8, { takesOver: fingerprint, ...OVER }), again(9)],
      9,
    ],
  ])("%s", (_what, spikes, id) => {
    expect(findDeciding(spikes).map((one) => one.id)).toEqual([id]);
    expect(findDeciding(spikes.toReversed()).map((one) => one.id)).toEqual([id]);
  });
});
