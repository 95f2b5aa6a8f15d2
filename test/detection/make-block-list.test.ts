import { expect, test } from "vitest";
import {
  type BlockIncident,
  MOST_ENTRIES,
  makeBlockList,
} from "#detection/rules/block-list/make-block-list.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { SenderCount } from "#model/review.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const AT = NOW - HOUR_MS;
const ATTACKER = "203.0.113.9";

const attackerOf = (key: string) => ({ kind: "rules_per_ip" as const, key, since: AT / MINUTE_MS });
const saidOf = (said: BlockIncident["verdicts"][number]["said"], odds: number) => [
  { judgedAt: AT, said, odds, title: "" },
];

function incidentOf(over: Partial<BlockIncident> = {}): BlockIncident {
  return {
    alertId: 1,
    ruleId: "942100",
    openedAt: AT,
    lastActiveAt: AT,
    mark: null,
    attackers: [attackerOf(ATTACKER)],
    verdicts: saidOf("attack", 0.93),
    ...over,
  };
}

function senderOf(ip: string, hostile = 1): SenderCount {
  const counts = { hostile, machine: 0, visitor: 0, unknown: 0, found: 0 };
  return { ago: 0, ip, asn: "", ja4: "", first: AT, from: AT, to: AT, ...counts };
}

const make = (incidents: readonly BlockIncident[], counts: readonly SenderCount[]) =>
  makeBlockList(incidents, { counts, countedTo: NOW, usual: [] }, NOW);

test.each([
  [{ verdicts: saidOf("attack", 0.9) }, true],
  [{ verdicts: saidOf("scanner", 0.95) }, true],
  [{ verdicts: saidOf("attack", 0.89) }, false],
  [{ verdicts: saidOf("misfire", 0.95) }, false],
  [{ verdicts: saidOf("unclear", 0.95) }, false],
  [{ verdicts: saidOf("attack", 0.5), mark: "attack" }, true],
  [{ mark: "misfire" }, false],
  [{ mark: "noise" }, false],
] satisfies [Partial<BlockIncident>, boolean][])(
  "of the incident %j the attacker is listed: %s",
  (over, isListed) => {
    expect(make([incidentOf(over)], [senderOf(ATTACKER)]).entries).toHaveLength(isListed ? 1 : 0);
  },
);

test.each([
  "198.51.100.*",
  "anon-abcdefghijklm-abcdefghijklm",
  "erased",
  "198.51.100.0",
  "someone",
  "127.0.0.1",
  "0.0.0.0",
  "10.1.2.3",
  "fd00:1:2:3::/64",
])("the key %s is never listed", (key) => {
  const { entries, leftOut } = make([incidentOf({ attackers: [attackerOf(key)] })], [senderOf(key)]);
  expect({ entries, leftOut }).toEqual({ entries: [], leftOut: { unusable: 1 } });
});

test("the end is doubled for each return, up to 30 days, and not for an incident that overlaps another", () => {
  const at = (ms: number) => incidentOf({ openedAt: ms, lastActiveAt: ms });
  const hoursOf = (...days: readonly number[]) => {
    const incidents = [at(AT), at(AT - 5 * MINUTE_MS), ...days.map((day) => at(NOW - day * DAY_MS))];
    const [entry] = make(incidents, [senderOf(ATTACKER)]).entries;
    return ((entry?.until ?? 0) - AT) / HOUR_MS;
  };
  const returns = [3, 6, 9, 12, 15];
  const hours = [0, 1, 2, 3, 4, 5].map((count) => hoursOf(...returns.slice(0, count)));
  expect(hours).toEqual([24, 48, 96, 192, 384, 720]);
});

test("no list is longer than the platform takes, and the heaviest entries are first", () => {
  const keys = Array.from({ length: MOST_ENTRIES + 3 }, (_, n) => `198.18.${n >> 7}.${1 + (n & 127)}`);
  const attackers = keys.map(attackerOf);
  const counts = keys.map((ip, index) => senderOf(ip, 1 + index));
  const { entries, leftOut } = make([incidentOf({ attackers })], counts);
  expect([entries.length, entries[0]?.value, leftOut]).toEqual([
    MOST_ENTRIES,
    keys.at(-1),
    { "too-many": 3 },
  ]);
});
