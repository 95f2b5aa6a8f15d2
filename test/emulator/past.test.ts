import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createEmulator } from "#emulator/emulator.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { bodyOf, call, NOW, openEmulator, oracle, search, send } from "./support.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "emulator-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test("two emulators of one seed show the same events, of another seed none of them", async () => {
  const [one, same, other] = [await openEmulator(), await openEmulator(), await openEmulator({ seed: "2" })];
  const events = await oracle(one);
  expect(events.length).toBeGreaterThan(500);
  expect(await oracle(same)).toEqual(events);
  const ids = new Set(events.map((event) => event.logId));
  expect((await oracle(other)).filter((event) => ids.has(event.logId))).toEqual([]);
  expect((await oracle(one, 102)).filter((event) => ids.has(event.logId))).toEqual([]);
});

test("a restart an hour later shows the same past, its attack included, and goes on from there", async () => {
  const stateFile = join(folder(), "deep", "emulator.json");
  const first = await openEmulator({ stateFile });
  const attack = first.addAttack("zone=101,rule=942440,start=-30m,duration=10m,rate=2/s");
  first.advance(20 * MINUTE_MS);
  const before = await oracle(first);
  expect(before.filter((event) => event.ruleId === "942440").length).toBeGreaterThanOrEqual(1_200);
  await first.close();

  const second = await openEmulator({ stateFile, clock: () => NOW + HOUR_MS });
  const after = await oracle(second);
  const ids = new Map(after.map((event) => [event.logId, event]));
  for (const event of before) expect(ids.get(event.logId)).toEqual(event);
  expect(after.length).toBeGreaterThan(before.length);
  expect(
    second.addAttack(`zone=101,rule=942440,start=${attack.startMs},duration=10m,rate=2/s`),
  ).toMatchObject({ startMs: attack.startMs });
  expect((await oracle(second)).length).toBe(after.length);
  expect(readdirSync(join(stateFile, ".."))).toEqual(["emulator.json"]);
  expect(statSync(stateFile).mode & 0o777).toBe(0o600);
});

test("events beyond the horizon leave the search and stay in the oracle", async () => {
  const emulator = await openEmulator({ historyHours: 1, eventsPerSecond: 0.05 });
  const before = await oracle(emulator);
  emulator.advance(100 * HOUR_MS);
  const after = await oracle(emulator);
  const ids = new Set(after.map((event) => event.logId));
  expect(before.every((event) => ids.has(event.logId))).toBe(true);

  const nowMs = emulator.now();
  const inHorizon = after.filter((event) => event.timestamp > nowMs - 72 * HOUR_MS);
  expect((await search(emulator, { from: 0, pageSize: 1 })).total).toBe(inHorizon.length);
  const { shieldZones } = await bodyOf<{ shieldZones: { id: number; events: number }[] }>(
    call(emulator, "/_emulator"),
  );
  expect(shieldZones.find((zone) => zone.id === 101)?.events).toBe(after.length);
});

test("dropping old events from memory changes nothing that is shown", async () => {
  const walked = await openEmulator({ historyHours: 2, eventsPerSecond: 0.01 });
  await search(walked, {});
  walked.advance(10 * 24 * HOUR_MS);
  const present = await openEmulator({ historyHours: 2, eventsPerSecond: 0.01 });
  present.advance(10 * 24 * HOUR_MS);
  const grouped = { groupBy: ["ruleId"], buckets: 9 };
  expect(await search(walked, grouped)).toEqual(await search(present, grouped));
  expect(await oracle(walked)).toEqual(await oracle(present));
});

test("a history longer than the horizon shows only what the horizon allows, now and to the oracle", async () => {
  const emulator = await openEmulator({ historyHours: 75, eventsPerSecond: 0.02 });
  const events = await oracle(emulator);
  expect(Math.min(...events.map((event) => event.timestamp))).toBeGreaterThan(NOW - 72 * HOUR_MS);
  expect((await search(emulator, { from: 0, pageSize: 1 })).total).toBe(events.length);
});

test("a new rate applies from the restart on and keeps the past", async () => {
  const stateFile = join(folder(), "emulator.json");
  const first = await openEmulator({ stateFile, historyHours: 1 });
  const before = await oracle(first);
  await first.close();
  const second = await openEmulator({ stateFile, historyHours: 1, eventsPerSecond: 3, zones: [101, 103] });
  expect((await oracle(second)).slice(0, before.length)).toEqual(before);
  second.advance(10 * MINUTE_MS);
  const since = (await oracle(second)).filter((event) => event.timestamp >= NOW).length;
  expect(since).toBeGreaterThan(before.length);
  expect((await oracle(second, 103)).length).toBeGreaterThan(0);
  expect((await call(second, "/_emulator/events/102")).status).toBe(404);
});

test("a state file of another seed, or one that is not state, is refused and left alone", async () => {
  const stateFile = join(folder(), "emulator.json");
  await (await createEmulator({ stateFile, seed: "a", historyHours: 0 })).close();
  const text = readFileSync(stateFile, "utf8");
  await expect(createEmulator({ stateFile, seed: "b" })).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining('seed "a"'),
  });
  expect(readFileSync(stateFile, "utf8")).toBe(text);
  writeFileSync(stateFile, "{");
  await expect(createEmulator({ stateFile })).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining(stateFile),
  });
});

test("a day at the default rate holds a third of 200,000 events, of a dozen rules in two zones", async () => {
  const emulator = await openEmulator({ historyHours: 24, eventsPerSecond: 0.9 });
  const { shieldZones } = await bodyOf<{ shieldZones: { events: number; rules: string[] }[] }>(
    call(emulator, "/_emulator"),
  );
  expect(shieldZones).toHaveLength(2);
  expect(shieldZones.reduce((sum, zone) => sum + zone.events, 0)).toBeGreaterThanOrEqual(200_000 / 3);
  for (const zone of shieldZones)
    expect(zone.rules.filter((rule) => /^9[1-4]\d{4}$/.test(rule)).length).toBeGreaterThanOrEqual(12);
});

test("the traffic carries what hurts spreadsheets, terminals, browsers and databases, and IPv6 clients", async () => {
  const emulator = await openEmulator({ eventsPerSecond: 1 });
  const events = await oracle(emulator);
  const text = events.map((event) => JSON.stringify([event.ua, event.url, event.log])).join("\n");
  for (const sign of [
    "=cmd|",
    "\\u001b[",
    "\u202e",
    "\\u0000",
    "\\ud83d",
    "\u{1f4a5}",
    "jndi:ldap",
    "<script>",
    "UNION SELECT",
  ]) {
    expect(text).toContain(sign);
  }
  expect(events.some(({ ip }) => ip.includes(":"))).toBe(true);
  expect(events.some((event) => event.ua.length > 5_000)).toBe(true);
});

test("a late event shows up when it is due, not at its timestamp, and then everywhere", async () => {
  const emulator = await openEmulator({ lateShare: 0.5, historyHours: 1 });
  const earlier = new Set((await oracle(emulator)).map((event) => event.logId));
  emulator.advance(13 * MINUTE_MS);
  const late = (await oracle(emulator)).filter((event) => event.timestamp < NOW && !earlier.has(event.logId));
  expect(late.length).toBeGreaterThan(20);
  const found = await search(emulator, { to: NOW, pageSize: 500 });
  const shown = new Set(found.rows?.map((row) => row.logId));
  expect(late.slice(-10).every((event) => shown.has(event.logId))).toBe(true);
});

test("an attack comes from few clients, at the scripted rate, between its bounds", async () => {
  const emulator = await openEmulator();
  const scripted = await send(
    emulator,
    "POST",
    "/_emulator/attacks",
    "zone=102,rule=990001,start=+60s,duration=5m,rate=20/s",
  );
  expect(await scripted.json()).toMatchObject({
    zone: 102,
    rule: "990001",
    startMs: NOW + MINUTE_MS,
    durationMs: 5 * MINUTE_MS,
  });
  emulator.advance(30 * MINUTE_MS);
  const attack = (await oracle(emulator, 102)).filter((event) => event.ruleId === "990001");
  expect(attack).toHaveLength(6_000);
  expect(
    attack.every((event) => event.timestamp >= NOW + MINUTE_MS && event.timestamp < NOW + 6 * MINUTE_MS),
  ).toBe(true);
  expect(new Set(attack.map((event) => event.ip)).size).toBeLessThanOrEqual(6);
});

test("each kind of attack has its clients, rules, fingerprints, networks and paths", async () => {
  const emulator = await openEmulator({ historyHours: 1, eventsPerSecond: 0.05 });
  const kinds = [
    "scanner",
    "botnet",
    "network",
    "url",
    "slow-scan",
    "monitor",
    "broken-client",
    "deployment",
    "browser-update",
  ];
  for (const [i, kind] of kinds.entries())
    emulator.addAttack(
      `kind=${kind},zone=102,start=+${(i + 1) * 15}m,duration=10m,rate=5/s${kind === "deployment" ? ",rule=990002" : ""}`,
    );
  emulator.advance((kinds.length + 1) * 15 * MINUTE_MS);
  const all = await oracle(emulator, 102);
  const seen = kinds.map((kind, i) => {
    const from = NOW + (i + 1) * 15 * MINUTE_MS;
    const events = all.filter(({ timestamp }) => timestamp >= from && timestamp < from + 10 * MINUTE_MS);
    const top = (values: readonly (string | null)[]) =>
      Math.max(0, ...[...Map.groupBy(values, (value) => value).values()].map(({ length }) => length)) >=
      2_750;
    const often = (values: readonly (string | null)[], least: number) =>
      [...Map.groupBy(values, (value) => value).values()].filter(({ length }) => length >= least).length;
    return {
      kind,
      oneClient: top(events.map(({ ip }) => ip)),
      oneAgent: top(events.map(({ ja4 }) => ja4)),
      oneNetwork: top(events.map(({ asn }) => asn)),
      onePath: top(events.map(({ url }) => new URL(url ?? "http://x").pathname)),
      rules: often(
        events.map(({ ruleId }) => ruleId),
        50,
      ),
      clients: often(
        events.map(({ ip }) => ip),
        10,
      ),
    };
  });
  const of = (kind: string) => seen.find((one) => one.kind === kind);
  expect(of("scanner")).toMatchObject({ oneClient: true, rules: 40, onePath: false });
  expect(of("botnet")).toMatchObject({ oneClient: false, oneAgent: true, clients: 300, rules: 25 });
  expect(of("network")).toMatchObject({ oneAgent: false, oneNetwork: true, clients: 100, rules: 10 });
  expect(of("url")).toMatchObject({ onePath: true, oneAgent: false, clients: 200, rules: 4 });
  expect(of("slow-scan")).toMatchObject({ oneClient: true, rules: 30 });
  expect(of("monitor")).toMatchObject({ onePath: true, clients: 3, rules: 1 });
  expect(of("broken-client")).toMatchObject({ oneClient: true, onePath: true, rules: 2 });
  expect(of("deployment")).toMatchObject({ oneClient: false, oneAgent: false, rules: 1 });
  expect(of("browser-update")).toMatchObject({
    oneClient: false,
    oneAgent: true,
    oneNetwork: false,
    onePath: false,
  });
  expect(() => emulator.addAttack("kind=flood,zone=102")).toThrow(
    /kind must be one of rule, scanner, botnet/,
  );
});

test("the clock can be stopped, moved and given back", async () => {
  const emulator = await openEmulator();
  expect(await bodyOf(send(emulator, "POST", "/_emulator/clock", { now: NOW + 5 }))).toEqual({
    now: NOW + 5,
  });
  expect(await bodyOf(send(emulator, "POST", "/_emulator/clock", { advanceMs: 10 }))).toEqual({
    now: NOW + 15,
  });
  expect(await bodyOf(send(emulator, "POST", "/_emulator/clock", { now: null }))).toEqual({ now: NOW });
  expect((await send(emulator, "POST", "/_emulator/clock", { now: "noon" })).status).toBe(400);
  const later = (await oracle(emulator)).length;
  emulator.setNow(NOW - HOUR_MS);
  expect((await oracle(emulator)).length).toBeLessThan(later);
});
