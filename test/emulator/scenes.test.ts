import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { bodyOf, NOW, type OracleEvent, openEmulator, oracle, search, send } from "./support.ts";

/** Returns the values that at least `least` events have. */
function often(
  events: readonly OracleEvent[],
  name: "ip" | "ja4" | "asn" | "ruleId",
  least: number,
): string[] {
  const groups = Map.groupBy(events, (event) => event[name]);
  return [...groups].flatMap(([value, { length }]) => (length >= least ? [value] : []));
}

function between<T extends { timestamp: number }>(events: readonly T[], from: number, to: number): T[] {
  return events.filter(({ timestamp }) => timestamp >= NOW + from && timestamp < NOW + to);
}

test("four scanners begin one after the other within an hour, and each sends 300 events on 40 rules", async () => {
  const emulator = await openEmulator({ eventsPerSecond: 0.001 });
  const script = { attack: "kind=four-scanners,zone=101,start=+1m" };
  expect(await bodyOf(send(emulator, "POST", "/_emulator/attacks", script))).toMatchObject({
    kind: "four-scanners",
    durationMs: HOUR_MS,
  });
  emulator.advance(2 * HOUR_MS);
  const all = await oracle(emulator);
  const scanners = often(all, "ip", 290).map((ip) => all.filter((event) => event.ip === ip));
  expect(scanners).toHaveLength(4);
  const spans = scanners.map((events) => {
    expect(Math.abs(events.length - 300)).toBeLessThan(10);
    expect(often(events, "ruleId", 1).length).toBeGreaterThanOrEqual(40);
    const times = events.map(({ timestamp }) => timestamp).toSorted((a, b) => a - b);
    return { from: times[5] ?? 0, to: times.at(-5) ?? 0 };
  });
  const starts = spans.map(({ from }) => from).toSorted((a, b) => a - b);
  for (const [i, at] of starts.slice(1).entries())
    expect(at - (starts[i] as number)).toBeGreaterThan(3 * MINUTE_MS);
  expect(Math.max(...starts)).toBeLessThan(Math.min(...spans.map(({ to }) => to)));
});

test("a second botnet begins while the first is active, and has another fingerprint", async () => {
  const emulator = await openEmulator({ eventsPerSecond: 0.001 });
  emulator.addAttack("kind=two-botnets,zone=101,start=+1m");
  emulator.advance(2 * HOUR_MS);
  const all = await oracle(emulator);
  const [first, second, ...more] = often(all, "ja4", 300);
  expect([first === second, more]).toEqual([false, []]);
  const early = between(all, 2 * MINUTE_MS, 18 * MINUTE_MS);
  const middle = between(all, 25 * MINUTE_MS, 38 * MINUTE_MS);
  expect(often(early, "ja4", 100)).toHaveLength(1);
  expect(new Set(often(middle, "ja4", 100))).toEqual(new Set([first, second]));
});

test("a rotating scanner changes its address every ten minutes in one network, a roaming one over networks", async () => {
  const emulator = await openEmulator({ eventsPerSecond: 0.001 });
  emulator.addAttack("kind=rotating-scanner,zone=101,start=+0s");
  emulator.addAttack("kind=roaming-scanner,zone=102,start=+0s");
  emulator.advance(2 * HOUR_MS);
  for (const zone of [101, 102]) {
    const events = await oracle(emulator, zone);
    const turns = Array.from({ length: 6 }, (_, i) =>
      often(between(events, i * 10 * MINUTE_MS, (i + 1) * 10 * MINUTE_MS), "ip", 100),
    );
    expect(turns.map(({ length }) => length)).toEqual([1, 1, 1, 1, 1, 1]);
    const addresses = new Set(turns.flat());
    expect(addresses.size).toBe(6);
    const subnets = new Set([...addresses].map((ip) => ip.split(".").slice(0, 3).join(".")));
    expect(subnets.size === 1).toBe(zone === 101);
    expect(often(events, "ja4", 600)).toHaveLength(1);
    expect(often(events, "asn", 20).length === 1).toBe(zone === 101);
  }
});

test("a flipped rule logs its events before the middle of its duration and blocks them after it", async () => {
  const emulator = await openEmulator();
  emulator.addAttack("kind=flip,zone=101,rule=990100,start=+0s,duration=2h,rate=1/m");
  emulator.advance(3 * HOUR_MS);
  const events = (await oracle(emulator)).filter(({ ruleId }) => ruleId === "990100");
  expect(events).toHaveLength(120);
  const actions = (from: number, to: number) =>
    new Set(between(events, from, to).map(({ action }) => action.toLowerCase()));
  expect(actions(0, HOUR_MS)).toEqual(new Set(["log"]));
  expect(actions(HOUR_MS, 2 * HOUR_MS)).toEqual(new Set(["block"]));
  expect(often(events, "ip", 2).length).toBeGreaterThan(20);
});

test("a silent rule has no event while it is silent, and the other rules have all of theirs", async () => {
  const options = { eventsPerSecond: 0.6 };
  const [plain, silent] = [await openEmulator(options), await openEmulator(options)];
  silent.addAttack("kind=silence,zone=101,rule=930130,start=-1h,duration=2h");
  for (const emulator of [plain, silent]) emulator.advance(2 * HOUR_MS);
  const expected = (await oracle(plain)).filter(
    ({ ruleId, timestamp }) => ruleId !== "930130" || timestamp < NOW || timestamp >= NOW + HOUR_MS,
  );
  expect(await oracle(silent)).toEqual(expected);
  expect(between(expected, HOUR_MS, 2 * HOUR_MS).some(({ ruleId }) => ruleId === "930130")).toBe(true);
});

test("during an outage nothing new appears, and after it everything that was due", async () => {
  const options = { eventsPerSecond: 1, lateShare: 0.2, historyHours: 1 };
  const [plain, broken] = [await openEmulator(options), await openEmulator(options)];
  broken.addAttack("kind=outage,zone=101,start=+10m,duration=30m");
  const shown = async (emulator: typeof plain) => (await oracle(emulator)).map(({ logId }) => logId);
  for (const emulator of [plain, broken]) emulator.advance(10 * MINUTE_MS - 1);
  const before = await shown(broken);
  expect(before).toEqual(await shown(plain));
  for (const emulator of [plain, broken]) emulator.advance(30 * MINUTE_MS);
  expect(await shown(broken)).toEqual(before);
  expect((await search(broken, { pageSize: 1 })).total).toBe(before.length);
  for (const emulator of [plain, broken]) emulator.advance(1);
  const after = await shown(broken);
  expect(after).toEqual(await shown(plain));
  expect(after.length).toBeGreaterThan(before.length + 500);
  expect((await search(broken, { pageSize: 1 })).total).toBe(after.length);
});

test("kinds that only change other events refuse a rate, and an outage a rule", async () => {
  const emulator = await openEmulator({ eventsPerSecond: 0.001 });
  expect(() => emulator.addAttack("kind=silence,zone=101,rule=930130,rate=2/s")).toThrow(
    'rate "2/s" must be left out: kind silence adds no events',
  );
  expect(() => emulator.addAttack("kind=outage,zone=101,rule=930130")).toThrow(
    'rule "930130" must be left out: kind outage takes no rule',
  );
  expect(() => emulator.addAttack("kind=silence,zone=101")).toThrow("rule: must be a rule id");
});
