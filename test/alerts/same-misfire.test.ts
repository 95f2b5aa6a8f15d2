import { expect, test } from "vitest";
import { type AlertRecord, NOBODY, nextAlert } from "#alerts/rules/alert-record.ts";
import type { AlertSpike } from "#alerts/rules/alert-spike.ts";
import { alertOf, decideAll } from "#alerts/rules/decide-all.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { VerdictWord } from "#model/kinds.ts";
import { verdictOf } from "../support/stored-verdict.ts";
import { alertSpike, NOW } from "./support.ts";

const at = (minutes: number) => NOW + minutes * MINUTE_MS;
const spikeOf = (id: number, minutes: number, over: Partial<AlertSpike> = {}) =>
  alertSpike({ id, ruleId: `94${id}100`, openedAtMs: at(minutes), ...over });

interface Given {
  readonly said?: Readonly<Record<number, VerdictWord>>;
  /** The path of a spike's sample; without one, each spike has a path of its own. */
  readonly paths?: Readonly<Record<number, string>>;
  /** The spikes of whose alerts people were notified. */
  readonly notified?: readonly number[];
  readonly fewAddresses?: number;
  /** The other alerts, by the spike. */
  readonly records?: Readonly<Record<number, AlertRecord>>;
}

function decideOnAll(spikes: readonly AlertSpike[], given: Given = {}, nowMs = at(600)) {
  const { said = {}, paths = {}, notified = [], fewAddresses = 0, records = {} } = given;
  const { sample, counts } = verdictOf();
  const none = { ...counts, blocked: 0, challenged: 0, hostile: 0, hostileThrough: 0 };
  const verdicts = new Map(
    spikes.map(({ id }) => {
      const url = `https://shop.example/${paths[id] ?? `page-${"abc"[id % 3]}`}`;
      return [
        id,
        [verdictOf({ said: said[id] ?? "misfire", counts: none, sample: sample && { ...sample, url } })],
      ] as const;
    }),
  );
  const routing = { ...routeToAll(["chat"]), fewAddresses };
  const known = new Map(
    spikes.flatMap((spike) => {
      const record = notified.includes(spike.id) ? notifiedOf(spike) : records[spike.id];
      return record === undefined ? [] : [[alertOf(spike), record] as const];
    }),
  );
  const recordOf = (fingerprint: string) => known.get(fingerprint) ?? null;
  return decideAll(spikes, { nowMs, routing, asks: [], silences: [], verdicts, recordOf });
}

function notifiedOf({ id, severity, openedAtMs }: AlertSpike): AlertRecord {
  const recipients = { ...NOBODY, notified: ["chat"] };
  return nextAlert(null, {
    reason: "first",
    occurrence: { id, severity, openedAtMs },
    recipients,
    nowMs: NOW,
  });
}

const found = (spikes: readonly AlertSpike[], given?: Given) => [
  ...(decideOnAll(spikes, given).context.sameMisfires ?? []),
];

test.each<[string, AlertSpike[], Given, number[]]>([
  ["one alone", [spikeOf(1, 0)], {}, []],
  ["the second of two that begin within an hour", [spikeOf(2, 60), spikeOf(1, 0)], {}, [2]],
  ["none of two that begin more than an hour apart", [spikeOf(1, 0), spikeOf(2, 61)], {}, []],
  [
    "one of the same path, hours later",
    [spikeOf(1, 0), spikeOf(2, 300)],
    { paths: { 1: "a/7", 2: "a/9" } },
    [2],
  ],
  ["none of two zones", [spikeOf(1, 0), spikeOf(2, 1, { zoneId: 7 })], {}, []],
  [
    "the one of which nobody was notified, although it began first",
    [spikeOf(1, 0), spikeOf(2, 1)],
    { notified: [2] },
    [1],
  ],
  ["none of two of which people were notified", [spikeOf(1, 0), spikeOf(2, 1)], { notified: [1, 2] }, []],
  [
    "no attack, and no unclear one",
    [spikeOf(1, 0), spikeOf(2, 1), spikeOf(3, 2)],
    { said: { 2: "attack", 3: "unclear" } },
    [],
  ],
  ["none beside an attack", [spikeOf(1, 0), spikeOf(2, 1)], { said: { 1: "attack" } }, []],
  ["no change of a rule", [spikeOf(1, 0), spikeOf(2, 1, { kind: "action-change" })], {}, []],
  ["none beside a member of another alert", [spikeOf(1, 0, { memberOf: 9 }), spikeOf(2, 1)], {}, []],
  [
    "one beside a member of which people were notified before it became one",
    [spikeOf(1, 0, { memberOf: 9 }), spikeOf(2, 1)],
    { notified: [1] },
    [2],
  ],
  [
    "none beside one that is only listed",
    [spikeOf(1, 0, { addresses: 1 }), spikeOf(2, 1, { addresses: 20 })],
    { fewAddresses: 3 },
    [],
  ],
])("of misfires nobody is notified again of: %s", (_what, spikes, given, expected) => {
  expect(found(spikes, given)).toEqual(expected);
});

test("nobody is notified of the second misfire until it turns out to be an attack", () => {
  const spikes = [spikeOf(1, 0), spikeOf(2, 1)] as const;
  const decideOn = (given: Given, before: AlertRecord | null) => {
    const records = before === null ? {} : { 2: before };
    const { decideOn } = decideOnAll(spikes, { notified: [1], records, ...given }, at(60));
    return decideOn({ ...spikes[1], severity: "error" }).decision;
  };
  const first = decideOn({}, null);
  expect(first).toMatchObject({ reason: "first", notified: [], alert: { state: "firing" } });
  expect(first?.alert.transitions.at(-1)).toMatchObject({ mutedBy: "misfire" });
  expect(decideOn({}, first?.alert ?? null)).toBeNull();
  expect(decideOn({ said: { 2: "attack" } }, first?.alert ?? null)).toMatchObject({ notified: ["chat"] });
});

test("a misfire whose spike has closed, and whose alert has ended, holds no other back", () => {
  const [one, two] = [spikeOf(1, 0, { closedAtMs: at(40) }), spikeOf(2, 1)];
  const over = { ...notifiedOf(one), state: "resolved" as const, resolvedAtMs: at(40) };
  expect(found([one, two], { notified: [1] })).toEqual([2]);
  expect(found([one, two], { records: { 1: over } })).toEqual([]);
  expect(found([two])).toEqual([]);
});
