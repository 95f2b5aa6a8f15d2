import { expect, test } from "vitest";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { parseAttack } from "#emulator/traffic/attack.ts";
import { createTraffic } from "#emulator/traffic/traffic.ts";
import { sample } from "../support/sample.ts";
import { type FoundEpisode, findEpisodes } from "./support/scan-history.ts";

const START = Date.UTC(2026, 10, 20, 15, 30, 20);
const HISTORY_MINUTES = 72 * 60;
const WATCHED_MINUTES = 60;
const FIRST = Math.floor(START / 60_000) - HISTORY_MINUTES;
const ATTACK_AT = START + 60_000;
const SEEDS = sample(["1", "2"], (seed) => seed === "2");

/** The emulator's own history, and the hour after it in which an attack runs. Openings by zone and rule. */
function watch(seed: string): Map<string, FoundEpisode[]> {
  const traffic = createTraffic({ seed, lateness: { share: 0, maxMs: 0 } });
  const parsed = parseAttack("zone=101,rule=942100,start=+60s,duration=10m,rate=40/s", START);
  if ("mistakes" in parsed) throw new Error(parsed.mistakes.join());
  traffic.addAttack(parsed.attack);
  const counts = new Map<string, Int32Array>();
  for (const id of [101, 102]) {
    const firstEventMs = FIRST * 60_000;
    const rates = [{ sinceMs: 0, eventsPerSecond: 0.45 }];
    for (let i = 0; i < HISTORY_MINUTES + WATCHED_MINUTES; i += 1) {
      for (const { rule } of traffic.minute(
        { id, firstEventMs, createdAtMs: firstEventMs, rates },
        FIRST + i,
      )) {
        const key = `${id}/${rule.ruleId}`;
        const series = counts.get(key) ?? new Int32Array(HISTORY_MINUTES + WATCHED_MINUTES);
        series[i] = (series[i] ?? 0) + 1;
        counts.set(key, series);
      }
    }
  }
  return new Map([...counts].map(([key, series]) => [key, findEpisodes(series, FIRST, { z: 3.5 })]));
}

test("everyday emulated traffic opens few spikes, and a scripted attack opens exactly one within two closed minutes", () => {
  let everyday = 0;
  let series = 0;
  const attackMinute = Math.floor(ATTACK_AT / 60_000);
  const attacked: FoundEpisode[] = [];
  for (const seed of SEEDS) {
    for (const [key, episodes] of watch(seed)) {
      if (key === "101/942100") attacked.push(...episodes.filter(({ openedAt }) => openedAt > attackMinute));
      series += 1;
      everyday += episodes.filter(
        ({ openedAt }) => openedAt > FIRST + 1_440 && openedAt <= attackMinute,
      ).length;
    }
  }
  expect(attacked).toHaveLength(SEEDS.length);
  for (const episode of attacked) {
    expect(episode).toMatchObject({ kind: "spike", severity: "critical" });
    expect(episode.openedAt).toBeLessThanOrEqual(attackMinute + 2);
    expect(episode.closedAt).toBeLessThanOrEqual(attackMinute + 10 + 35);
  }
  // The emulator's bursts of up to five times the usual are spikes too: one series in ten has one in two days.
  expect(everyday / series / 2).toBeLessThan(0.15);
});

test("four scanners with one tool are one incident, each is named within two minutes of its line, in five messages", () => {
  const traffic = createTraffic({ seed: "1", lateness: { share: 0, maxMs: 0 } });
  const parsed = parseAttack("kind=four-scanners,zone=101,start=+60s,duration=108m,rate=4.2/m", START);
  if ("mistakes" in parsed) throw new Error(parsed.mistakes.join());
  traffic.addAttack(parsed.attack);
  const replay = createZoneReplay({ z: 3.5, floor: 10, fewAddresses: 3 });
  const firstEventMs = FIRST * 60_000;
  const zone = {
    id: 101,
    firstEventMs,
    createdAtMs: firstEventMs,
    rates: [{ sinceMs: 0, eventsPerSecond: 0.45 }],
  };
  const rulesOf = new Map<string, Set<string>>();
  const reachedAt = new Map<string, number>();
  for (let minute = FIRST; minute < FIRST + HISTORY_MINUTES + 180; minute += 1)
    for (const { ip, asn, ja4, ua, url, rule } of traffic.minute(zone, minute)) {
      replay.take({ ruleId: rule.ruleId, ip, asn, ja4, ua, url }, minute);
      if (minute * 60_000 < START) continue;
      const rules = (rulesOf.get(ip) ?? new Set()).add(rule.ruleId);
      rulesOf.set(ip, rules);
      if (rules.size >= 15 && !reachedAt.has(ip)) reachedAt.set(ip, minute);
    }
  const scanners = [...rulesOf].filter(([, rules]) => rules.size >= 35).map(([ip]) => ip);
  expect(scanners).toHaveLength(4);
  const messages = replay.finish().filter(({ at }) => at * 60_000 > START);
  const naming = (ip: string) => messages.filter(({ attackers }) => attackers.some(({ key }) => key === ip));
  expect(new Set(scanners.flatMap(naming).map(({ incident }) => incident)).size).toBe(1);
  for (const ip of scanners)
    expect((naming(ip)[0]?.at ?? 0) - (reachedAt.get(ip) ?? 0)).toBeLessThanOrEqual(2);
  const sent = messages.filter(({ subject, reason }) => subject === "incident" && reason !== "resolved");
  expect(sent.length).toBeLessThanOrEqual(5);
});
