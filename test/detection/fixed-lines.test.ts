import { expect, test } from "vitest";
import { createSourceWatch } from "#detection/rules/sources/source-watch.ts";
import { MINUTES_PER_DAY } from "#lib/units.ts";

const START = 100 * MINUTES_PER_DAY;
const IP = "198.51.100.7";

interface Sent {
  readonly events: number;
  readonly rules: number;
  readonly urls: number;
}

/** A zone whose address sends the events within one minute, so long after the zone's first event. */
function fire(after: number, { events, rules, urls }: Sent, { familiar = 0 } = {}) {
  const watch = createSourceWatch();
  const take = (minute: number, ip: string, i: number, of: Omit<Sent, "events">) =>
    watch.take(
      { ruleId: `9${i % of.rules}`, ip, asn: null, ja4: null, ua: null, url: `/${i % of.urls}` },
      minute,
    );
  watch.closeUntil(START);
  take(START, "192.0.2.1", 0, { rules: 1, urls: 1 });
  const at = START + after;
  for (let day = familiar; day > 0; day -= 1)
    for (let i = 0; i < rules; i += 1) {
      watch.closeUntil(at - day * MINUTES_PER_DAY + i);
      take(at - day * MINUTES_PER_DAY + i, IP, i, { rules, urls });
    }
  watch.closeUntil(at);
  for (let i = 0; i < events; i += 1) take(at, IP, i, { rules, urls });
  const fires = watch.closeUntil(at + 1).flatMap((minute) => minute.fires);
  return fires.map(({ kind, count, threshold }) => ({ kind, count, threshold }));
}

const OLD = 3 * MINUTES_PER_DAY;
const HOUR = 60;

test.each([
  ["twelve rules in a minute", OLD, { events: 12, rules: 12, urls: 12 }, { count: 12, threshold: 12 }],
  ["eleven rules in a minute", OLD, { events: 40, rules: 11, urls: 12 }, null],
  ["twelve rules of one form that is posted twice", OLD, { events: 24, rules: 12, urls: 2 }, null],
  [
    "a hundred events of three rules",
    OLD,
    { events: 100, rules: 3, urls: 50 },
    { count: 100, threshold: 100 },
  ],
  ["a hundred events of two rules", OLD, { events: 100, rules: 2, urls: 50 }, null],
  ["ninety-nine events of three rules", OLD, { events: 99, rules: 3, urls: 50 }, null],
  ["a thousand events of one request that is repeated", OLD, { events: 1_000, rules: 3, urls: 1 }, null],
  [
    "fifteen rules in the first hour",
    HOUR,
    { events: 15, rules: 15, urls: 15 },
    { count: 15, threshold: 15 },
  ],
  ["twelve rules in the first hour", HOUR, { events: 12, rules: 12, urls: 12 }, null],
  ["fifteen rules of one request in the first hour", HOUR, { events: 15, rules: 15, urls: 1 }, null],
  [
    "a hundred events in the first hour",
    HOUR,
    { events: 100, rules: 1, urls: 1 },
    { count: 100, threshold: 100 },
  ],
  [
    "a hundred events of one request of two rules in the first hour",
    HOUR,
    { events: 100, rules: 2, urls: 1 },
    null,
  ],
])("%s of one address: the fixed lines decide", (_, after, sent, expected) => {
  expect(fire(after, sent)).toEqual(expected === null ? [] : [{ kind: "rules_per_ip", ...expected }]);
});

test("twelve rules in a minute are no attack of an address that was seen with many rules on two days", () => {
  const sent = { events: 12, rules: 12, urls: 12 };
  expect(fire(OLD, sent, { familiar: 1 })).toHaveLength(1);
  expect(fire(OLD, sent, { familiar: 2 })).toEqual([]);
});

test("a look at the running minute counts its events once", () => {
  const watch = createSourceWatch();
  watch.take({ ruleId: "1", ip: "192.0.2.1", asn: null, ja4: null, ua: null, url: "/" }, START);
  const send = (count: number) => {
    for (let i = 0; i < count; i += 1)
      watch.take({ ruleId: `9${i % 3}`, ip: IP, asn: null, ja4: null, ua: null, url: `/${i}` }, START + OLD);
  };
  watch.closeUntil(START + OLD);
  for (const count of [40, 60, 99]) {
    send(count);
    expect(watch.judgeRunning(START + OLD)).toBeNull();
  }
  send(100);
  expect(watch.judgeRunning(START + OLD)?.fires).toMatchObject([{ count: 100 }]);
  send(99);
  expect(watch.closeUntil(START + OLD + 1)).toEqual([]);
});
