import { expect, test } from "vitest";
import { alerts } from "#db/schema/alerts.ts";
import { spikes, verdicts } from "#db/schema/spikes.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { START } from "../detection/detect-support.ts";
import { acknowledgeByHand } from "../operations/act-by-hand.ts";
import { type LiveRun, openBothWorlds, replayEvents, type SaidMessage } from "./both-worlds.ts";
import { createRequests, visitor } from "./draw-requests.ts";

const { database, world, runLive } = await openBothWorlds();

/** Runs the service and a replay over the events. Returns the messages of the service; those of the replay are the same. */
async function runBoth(
  events: readonly WafEvent[],
  { minutes, ...live }: { minutes: number } & Pick<LiveRun, "afterMinute">,
) {
  const span = { from: START, to: START + minutes };
  const said = await runLive(events, { ...span, ...live });
  const inOrder = (all: readonly SaidMessage[]) =>
    all.toSorted((a, b) => a.at - b.at || (a.rules < b.rules ? -1 : 1));
  expect(inOrder(said)).toEqual(inOrder(replayEvents(events, span)));
  return said;
}

const reasonsOf = (said: readonly SaidMessage[]) => said.map(({ reason }) => reason);

/** Injections of 60 addresses of new networks, ten a minute; each address has a fingerprint of its own, as a botnet has none. */
function attack(
  { request }: ReturnType<typeof createRequests>,
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

test("three rules of one request are one alert, whose subject is not the rule that adds the others up", async () => {
  const drawn = createRequests();
  drawn.everyday();
  attack(drawn, 3, ["949110", "942200", "942190"]);
  const said = await runBoth(drawn.events, { minutes: 60 });
  expect(reasonsOf(said).filter((reason) => reason === "first")).toHaveLength(1);
  expect(said[0]).toMatchObject({ subject: "rule", rules: "942190 942200 949110" });
  const stored = await world.readSpikes();
  const alone = stored.filter(({ memberOf }) => memberOf === null).map(({ ruleId }) => ruleId);
  expect(stored.map(({ ruleId }) => ruleId)).toEqual(expect.arrayContaining(["942190", "942200", "949110"]));
  expect(alone.filter((ruleId) => ruleId !== SOURCES_RULE)).toHaveLength(
    alone.includes(SOURCES_RULE) ? 0 : 1,
  );
  expect((await database.db.select().from(alerts)).filter(({ state }) => state !== "resolved")).toEqual([]);
});

test("a rule that adds up two others, with half of the requests each, has no alert of its own", async () => {
  const drawn = createRequests();
  drawn.everyday();
  for (const [index, ruleId] of ["942190", "933100"].entries())
    attack(drawn, 3, [ruleId, "949110"], (i) => ({
      ip: `203.0.${113 + index}.${i}`,
      ja4: `t13y${index}${i}`,
      url: `https://shop.example/${ruleId}/p${i}?q=${i}`,
    }));
  const said = await runBoth(drawn.events, { minutes: 40 });
  const firsts = said
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
  const drawn = createRequests();
  drawn.everyday();
  attack(drawn, 3, ["949110"]);
  const said = await runBoth(drawn.events, { minutes: 12 });
  const [spike] = (await world.readSpikes()).filter(({ ruleId }) => ruleId === "949110");
  expect(said[0]).toMatchObject({ reason: "first", rules: "949110" });
  expect(said[0]?.at).toBe((spike?.openedAt.getTime() ?? 0) / MINUTE_MS + 2);
});

test("a second wave is told again although the alert was acknowledged, with a verdict of its own requests", async () => {
  const drawn = createRequests();
  drawn.everyday();
  for (let i = 0; i < 120; i += 1)
    drawn.request(START + 3 + Math.floor(i / 12), ["944100"], {
      ...visitor(i % 50),
      url: `https://shop.example/page/${i % 13}?q=${i}`,
      action: "log",
    });
  attack(drawn, 39, ["944100"]);
  let isDone = false;
  const said = await runBoth(drawn.events, {
    minutes: 60,
    async afterMinute(_minute, sent) {
      if (isDone || sent.length === 0) return;
      isDone = true;
      const [alert] = await database.db.select().from(alerts);
      const act = { alertId: alert?.id ?? 0, by: "alice", note: null, atMs: world.now() };
      await acknowledgeByHand(database, act);
    },
  });
  expect(said[0]).toMatchObject({ at: START + 4, reason: "first" });
  const waves = said.filter(({ reason }) => reason === "again");
  expect(waves.map(({ at }) => at)).toEqual([START + 40]);
  const [first, second] = await database.db.select().from(spikes).orderBy(spikes.id);
  const stored = (await database.db.select().from(verdicts)).filter(({ spikeId }) => spikeId === second?.id);
  expect(first?.closedAt).not.toBeNull();
  // The first wave had 50 addresses in its ten minutes, and the second one had ten in its first.
  expect(stored.find(({ look }) => look === "first")?.verdict.counts).toMatchObject({
    events: 10,
    addresses: 10,
  });
  expect(await database.db.select().from(alerts)).toMatchObject([{ state: "firing", spikeId: second?.id }]);
});

test("a misfire that goes on at the same rate settles, and one that stops is resolved", async () => {
  const messages = async (minutes: number) => {
    const drawn = createRequests();
    drawn.everyday();
    for (let i = 0; i < minutes; i += 1)
      drawn.request(START + 3 + i, ["944900"], {
        ip: visitor((i * 7) % 400).ip ?? null,
        url: `https://shop.example/reviews/${i % 50}?text=a--b`,
      });
    return runBoth(drawn.events, { minutes: 150 });
  };
  const going = await messages(150);
  await world.clear();
  const stopped = await messages(20);
  const endsOf = (said: readonly SaidMessage[]) =>
    reasonsOf(said).filter((one) => one === "settled" || one === "resolved");
  expect([endsOf(going), endsOf(stopped)]).toEqual([["settled"], ["resolved"]]);
});

test("an attack from an unknown address of 25 networks notifies, and nobody is few addresses", async () => {
  const drawn = createRequests();
  drawn.everyday();
  attack(drawn, 3, ["942190"], (i) => ({
    ip: "0.0.0.0",
    url: `https://shop.example/search?id=${i}'%20union%20select%20password%20from%20users`,
  }));
  const said = await runBoth(drawn.events, { minutes: 20 });
  expect(said[0]).toMatchObject({ at: START + 4, reason: "first", verdict: "attack" });
  const transitions = (await database.db.select().from(alerts)).flatMap(
    (row) => row.transitions as { mutedBy: string | null }[],
  );
  expect(transitions.map(({ mutedBy }) => mutedBy)).not.toContain("few-addresses");
});
