import { beforeAll, describe, expect, test } from "vitest";
import { alerts } from "#db/schema/alerts.ts";
import { spikes, verdicts } from "#db/schema/spikes.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { START } from "../detection/detect-support.ts";
import { acknowledgeByHand } from "../operations/act-by-hand.ts";
import { SEED } from "../support/random-tests.ts";
import { sample } from "../support/sample.ts";
import { openBothWorlds, replayEvents, type SaidByZone, type SaidMessage } from "./both-worlds.ts";
import { createRequests, drawWorld, visitor } from "./draw-requests.ts";

const { database, world, runLive } = await openBothWorlds();
const SPAN = { from: START, to: START + 75 };

type Requests = ReturnType<typeof createRequests>;

/** Injections of 60 addresses of new networks, ten a minute; each address has a fingerprint of its own, as a botnet has none. */
function attack(
  { request }: Requests,
  from: number,
  rules: readonly string[],
  over: (index: number) => Partial<WafEvent> = () => ({}),
): void {
  for (let i = 0; i < 60; i += 1)
    request(START + from + Math.floor(i / 10), rules, {
      ip: `203.0.113.${i}`,
      ja4: `t13x${i % 9}`,
      asn: `AS${65_000 + (i % 25)}`,
      url: `https://shop.example/p${i}?id=${i}'%20or%201=1`,
      action: "log",
      ...over(i),
    });
}

/** Visitors who match a rule once a minute, for twenty minutes. */
function misfire({ request }: Requests): void {
  for (let i = 0; i < 20; i += 1)
    request(START + 3 + i, ["944900"], {
      ip: visitor((i * 7) % 400).ip ?? null,
      url: `https://shop.example/reviews/${i % 50}?text=a--b`,
    });
}

const [SUM, HALVES, SUM_ALONE, WAVES, STOPPED, UNKNOWN] = [101, 102, 103, 104, 105, 106] as const;

/** What happens beside the everyday visitors of a zone. */
const HAPPENINGS: Readonly<Record<number, (drawn: Requests) => void>> = {
  [SUM]: (drawn) => attack(drawn, 3, ["949110", "942200", "942190"]),
  [HALVES]: (drawn) => {
    for (const [index, ruleId] of ["942190", "933100"].entries())
      attack(drawn, 3, [ruleId, "949110"], (i) => ({
        ip: `203.0.${113 + index}.${i}`,
        ja4: `t13y${index}${i}`,
        url: `https://shop.example/${ruleId}/p${i}?q=${i}`,
      }));
  },
  [SUM_ALONE]: (drawn) => attack(drawn, 3, ["949110"]),
  [WAVES]: (drawn) => {
    for (let i = 0; i < 120; i += 1)
      drawn.request(START + 3 + Math.floor(i / 12), ["944100"], {
        ...visitor(i % 50),
        url: `https://shop.example/page/${i % 13}?q=${i}`,
        action: "log",
      });
    attack(drawn, 39, ["944100"]);
  },
  [STOPPED]: misfire,
  [UNKNOWN]: (drawn) =>
    attack(drawn, 3, ["942190"], (i) => ({
      ip: "0.0.0.0",
      url: `https://shop.example/search?id=${i}'%20union%20select%20password%20from%20users`,
    })),
};

/** Zones whose events are drawn, by their numbers. The last one has no event before its first day. */
const DRAWN = sample([1, 2, 3, 4], (number) => number === 2 || number === 3).map((number) => {
  const events = drawWorld((SEED % 100_000) * 10 + number);
  const first = number === 4 ? START - 5 * 60 : 0;
  return [110 + number, events.filter(({ occurredAt }) => occurredAt >= first * MINUTE_MS)] as const;
});

const zones = new Map<number, readonly WafEvent[]>([
  ...Object.entries(HAPPENINGS).map(([zoneId, happen]) => {
    const drawn = createRequests();
    drawn.everyday();
    happen(drawn);
    return [Number(zoneId), drawn.events] as const;
  }),
  ...DRAWN,
]);

let live: SaidByZone;
/** The alert of the zone with two waves, an hour after the beginning. */
let afterWaves: unknown[] = [];

beforeAll(async () => {
  let isAcknowledged = false;
  live = await runLive(zones, {
    ...SPAN,
    async afterMinute(minute, sent) {
      const alertsOfWaves = async () =>
        (await database.db.select().from(alerts)).filter(({ zoneId }) => zoneId === WAVES);
      if (minute === START + 60) afterWaves = await alertsOfWaves();
      if (isAcknowledged || sent.get(WAVES)?.length === 0) return;
      isAcknowledged = true;
      const [alert] = await alertsOfWaves();
      const act = { alertId: alert?.id ?? 0, by: "alice", note: null, atMs: world.now() };
      await acknowledgeByHand(database, act);
    },
  });
});

const said = (zoneId: number): readonly SaidMessage[] => live.get(zoneId) ?? [];
const reasonsOf = (zoneId: number) => said(zoneId).map(({ reason }) => reason);
const ofZone = <Row extends { zoneId: number | null }>(rows: readonly Row[], zoneId: number) =>
  rows.filter((row) => row.zoneId === zoneId);

const line = ({ at, subject, reason, severity, attackers, rules, verdict }: SaidMessage) =>
  `${at - START} ${subject} ${reason} ${severity} [${attackers}] [${rules}] ${verdict}`;

test.each([...zones.keys()])(
  "the service sends the messages of a replay of the same events (zone %d)",
  (zoneId) => {
    // A replay ends with its last event, which may come before the last minute.
    const linesOf = (all: readonly SaidMessage[]) =>
      all
        .filter(({ at }) => at < SPAN.to)
        .map(line)
        .toSorted();
    expect(said(zoneId).length).toBeGreaterThan(0);
    expect(linesOf(said(zoneId))).toEqual(linesOf(replayEvents(zones.get(zoneId) ?? [], SPAN)));
  },
);

describe("the first message", () => {
  test("three rules of one request are one alert, whose subject is not the rule that adds the others up", async () => {
    expect(reasonsOf(SUM).filter((reason) => reason === "first")).toHaveLength(1);
    expect(said(SUM)[0]).toMatchObject({ subject: "rule", rules: "942190 942200 949110" });
    const stored = ofZone(await world.readSpikes(), SUM);
    const alone = stored.filter(({ memberOf }) => memberOf === null).map(({ ruleId }) => ruleId);
    expect(stored.map(({ ruleId }) => ruleId)).toEqual(
      expect.arrayContaining(["942190", "942200", "949110"]),
    );
    expect(alone.filter((ruleId) => ruleId !== SOURCES_RULE)).toHaveLength(
      alone.includes(SOURCES_RULE) ? 0 : 1,
    );
    const all = ofZone(await database.db.select().from(alerts), SUM);
    expect(all.filter(({ state }) => state !== "resolved")).toEqual([]);
  });

  test("a rule that adds up two others, with half of the requests each, has no alert of its own", () => {
    const firsts = said(HALVES)
      .filter(({ reason }) => reason === "first")
      .map(({ rules }) =>
        rules
          .split(" ")
          .filter((one) => one !== "949110")
          .join(),
      );
    expect(firsts.toSorted()).toEqual(["933100", "942190"]);
  });

  test("a rule that adds others up notifies by itself after two minutes if no other rule spikes", async () => {
    const stored = ofZone(await world.readSpikes(), SUM_ALONE);
    const spike = stored.find(({ ruleId }) => ruleId === "949110");
    const [first] = said(SUM_ALONE);
    expect(first).toMatchObject({ reason: "first", rules: "949110" });
    expect(first?.at).toBe((spike?.openedAt.getTime() ?? 0) / MINUTE_MS + 2);
  });

  test("an attack from an unknown address of 25 networks notifies, and nobody is few addresses", async () => {
    expect(said(UNKNOWN)[0]).toMatchObject({ at: START + 4, reason: "first", verdict: "attack" });
    const transitions = ofZone(await database.db.select().from(alerts), UNKNOWN).flatMap(
      (row) => row.transitions as { mutedBy: string | null }[],
    );
    expect(transitions.map(({ mutedBy }) => mutedBy)).not.toContain("few-addresses");
  });
});

test("a second wave is told again although the alert was acknowledged, with a verdict of its own requests", async () => {
  expect(said(WAVES)[0]).toMatchObject({ at: START + 4, reason: "first" });
  const waves = said(WAVES).filter(({ reason }) => reason === "again");
  expect(waves.map(({ at }) => at)).toEqual([START + 40]);
  const [first, second] = ofZone(await database.db.select().from(spikes).orderBy(spikes.id), WAVES);
  const stored = (await database.db.select().from(verdicts)).filter(({ spikeId }) => spikeId === second?.id);
  expect(first?.closedAt).not.toBeNull();
  // The first wave had 50 addresses in its ten minutes, and the second one had ten in its first.
  expect(stored.find(({ look }) => look === "first")?.verdict.counts).toMatchObject({
    events: 10,
    addresses: 10,
  });
  expect(afterWaves).toMatchObject([{ state: "firing", spikeId: second?.id }]);
});

test("a misfire that stops is resolved", () => {
  expect(reasonsOf(STOPPED).filter((one) => one === "settled" || one === "resolved")).toEqual(["resolved"]);
});
