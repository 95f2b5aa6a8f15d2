import { eq } from "drizzle-orm";
import { pino } from "pino";
import { expect, test } from "vitest";
import { maskMessage } from "#alerts/operations/mask-message.ts";
import { exclusionOf } from "#alerts/rules/message/commands.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createRaiseAlertsJob } from "#jobs/alerts/raise-alerts.ts";
import { VERDICTS } from "#model/kinds.ts";
import { VERDICT_AFTER_MS } from "#model/verdict.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf } from "./incident.ts";

const { database, world } = await openAlertWorld();

/** Stores a verdict, judged so long after the first run as its time is after an opening: of several the latest one counts. */
function store(id: number, { look = "first", ...over }: Parameters<typeof verdictOf>[0] = {}) {
  const judgedAt = at(1).getTime() + VERDICT_AFTER_MS[look];
  return storeVerdict(database.db, { id, zoneId: 101 }, verdictOf({ look, judgedAt, ...over }));
}

/** One process that runs the job; `runs` counts how often it asked for another run while a message waited. */
function createProcess() {
  let nowMs = 0;
  const counted = { runs: 0 };
  const job = createRaiseAlertsJob({
    database,
    log: pino({ level: "silent" }),
    clock: () => nowMs,
    routing: () => routeToAll(["chat", "pager"]),
    zoneIds: [101],
    afterAlerts: async () => {},
    whileAwaited: () => void (counted.runs += 1),
  });
  const runAt = async (seconds: number) => {
    nowMs = at(1).getTime() + seconds * 1_000;
    await job.run({} as never, new AbortController().signal);
  };
  return { counted, runAt };
}

test("the first message waits less than three seconds for its verdict, which then follows", async () => {
  const id = await world.openSpike();
  const { counted, runAt } = createProcess();
  for (const seconds of [0, 1, 2.4]) await runAt(seconds);
  expect(await world.outbox()).toEqual([]);
  expect(counted.runs).toBe(3);
  await runAt(2.9);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  expect((await world.messages())[0]?.message).not.toHaveProperty("verdict");
  expect(counted.runs).toBe(3);

  await store(id, { odds: 0.8 });
  await runAt(4);
  await runAt(5);
  expect((await world.outbox()).slice(2)).toEqual(["2 turned chat", "2 turned pager"]);
  const [, , { message } = { message: null }] = await world.messages();
  expect(message).toMatchObject({ severity: "warning", verdict: { said: "attack", odds: 0.8 } });
  expect((await world.alerts())[0]?.transitions).toMatchObject([
    { reason: "first" },
    { reason: "turned", verdict: { spikeId: id, look: "first" } },
  ]);
});

test("a verdict that comes while the message waits is in the first message", async () => {
  const id = await world.openSpike();
  const { runAt } = createProcess();
  await runAt(0);
  await store(id);
  await runAt(0.3);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  expect((await world.messages())[0]?.message.verdict).toMatchObject({ said: "attack", look: "first" });
});

test("one address is only listed until its verdict says that the WAF stops forty of its requests", async () => {
  const id = await world.openSpike(0, { addresses: 1, mainSenders: 1, gradedBy: "score" });
  const { runAt } = createProcess();
  await runAt(0);
  expect(await world.outbox()).toEqual([]);
  const { counts } = verdictOf();
  await store(id, { counts: { ...counts, blocked: 39 } });
  await runAt(1);
  expect(await world.outbox()).toEqual([]);
  await store(id, { look: "minute", counts: { ...counts, blocked: 40 } });
  await runAt(2);
  expect(await world.outbox()).toEqual(["2 first chat", "2 first pager"]);
  // However sure the verdict is, one address is not beyond doubt.
  expect((await world.messages())[0]?.message).toMatchObject({ reason: "first", severity: "warning" });
});

test("a later verdict that changes nothing for a person is in the alert's message and notifies nobody", async () => {
  const id = await world.openSpike();
  const { runAt } = createProcess();
  await store(id, { odds: 0.7 });
  await runAt(0);
  await store(id, { look: "half-hour", odds: 0.8 });
  await runAt(1_800);
  expect(await world.outbox()).toHaveLength(2);
  const [alert] = await world.alerts();
  expect(alert?.details).toMatchObject({ message: { verdict: { look: "half-hour", odds: 0.8 } } });
});

test("a rise waits less than three seconds for the verdict that is due, so that its message says what is so by now", async () => {
  const id = await world.openSpike(0, { severity: "warning" });
  const { counted, runAt } = createProcess();
  await store(id, { odds: 0.7 });
  await runAt(0);
  await database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.id, id));
  await runAt(240);
  expect(await world.outbox()).toHaveLength(2);
  await store(id, { look: "five-minutes", odds: 0.8, counts: { ...verdictOf().counts, addresses: 12 } });
  await runAt(241);
  expect((await world.outbox()).slice(2)).toEqual(["2 worse chat", "2 worse pager"]);
  expect((await world.messages()).at(-1)?.message.verdict).toMatchObject({ look: "five-minutes", odds: 0.8 });
  const asked = counted.runs;
  // A verdict that is due holds nothing up while there is nothing to say.
  await runAt(1_800);
  expect(counted.runs).toBe(asked);
});

test.each<[string, number, (id: number) => Promise<unknown>]>([
  [
    "attackers join",
    400,
    (id) =>
      database.db
        .update(spikes)
        .set(incidentOf(attackerOf("203.0.113.1"), attackerOf("203.0.113.2", 7, { role: "joined" })))
        .where(eq(spikes.id, id)),
  ],
  [
    "the severity rises",
    400,
    (id) => database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.id, id)),
  ],
  ["a reminder is due", 5 * 3_600, async () => undefined],
])("if %s, the message asks for a new verdict and waits for it", async (_what, seconds, change) => {
  const id = await world.openSpike(0, incidentOf(attackerOf("203.0.113.1")));
  const { counted, runAt } = createProcess();
  const isAsked = async () =>
    (await database.pool.query("select asked_at from verdicts where asked_at is not null")).rows.length > 0;
  await store(id, { odds: 0.8, nextStep: "Block the address." });
  await runAt(0);
  expect(await isAsked()).toBe(false);
  await change(id);
  await runAt(seconds);
  expect(await world.outbox()).toHaveLength(2);
  expect(await isAsked()).toBe(true);
  expect(counted.runs).toBe(1);

  const judgedAt = at(1).getTime() + seconds * 1_000;
  expect(await store(id, { judgedAt, said: "scanner", nextStep: "Block the 2 addresses." })).toBe(true);
  expect(await isAsked()).toBe(false);
  await runAt(seconds + 1);
  const [later] = (await world.messages()).slice(2);
  expect(later?.message.verdict).toMatchObject({ said: "scanner", nextStep: "Block the 2 addresses." });
  expect(await world.outbox()).toHaveLength(4);
});

test("an alert whose peak has doubled is judged again without a message, and what joined a misfire is said at once", async () => {
  const id = await world.openSpike(0, { severity: "critical", addresses: 40, mainSenders: 30, score: 12 });
  const { counted, runAt } = createProcess();
  const grow = (peak: number) => database.db.update(spikes).set({ peak }).where(eq(spikes.id, id));
  await grow(50);
  await store(id, { look: "five-minutes", said: "misfire", likeliest: "misfire", peak: 50 });
  await runAt(300);
  await grow(99);
  await runAt(1_000);
  expect(counted.runs).toBe(0);
  await grow(100);
  await runAt(1_001);
  expect([counted.runs, await world.outbox()]).toEqual([1, ["1 first chat", "1 first pager"]]);
  const judgedAt = at(1).getTime() + 1_001_000;
  const counts = { ...verdictOf().counts, addresses: 40 };
  expect(await store(id, { look: "five-minutes", judgedAt, peak: 100, counts })).toBe(true);
  await runAt(1_002);
  expect((await world.outbox()).slice(2)).toEqual(["2 worse chat", "2 worse pager"]);
  expect((await world.messages()).at(-1)?.message).toMatchObject({
    severity: "critical",
    was: "Probably an attack",
  });
  await runAt(1_010);
  expect(counted.runs).toBe(1);
});

test("a message that waited for a new verdict in vain is sent with the one before", async () => {
  const id = await world.openSpike(0, incidentOf(attackerOf("203.0.113.1")));
  const { runAt } = createProcess();
  await store(id, { odds: 0.8 });
  await runAt(0);
  await database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.id, id));
  for (const seconds of [400, 401, 402.4]) await runAt(seconds);
  expect(await world.outbox()).toHaveLength(2);
  await runAt(402.6);
  expect((await world.outbox()).slice(2)).toEqual(["2 worse chat", "2 worse pager"]);
});

test("a verdict that turns for a message with another reason is said in that message, and not again", async () => {
  const id = await world.openSpike(0, incidentOf(attackerOf("203.0.113.1")));
  const { runAt } = createProcess();
  await store(id, { look: "five-minutes", judgedAt: at(1).getTime() });
  await runAt(0);
  const both = incidentOf(attackerOf("203.0.113.1"), attackerOf("203.0.113.2", 7, { role: "joined" }));
  await database.db.update(spikes).set(both).where(eq(spikes.id, id));
  await runAt(400);
  const judgedAt = at(1).getTime() + 400_000;
  await store(id, {
    look: "five-minutes",
    judgedAt,
    said: "misfire",
    likeliest: "misfire",
    title: "Misfire",
  });
  for (const seconds of [401, 405, 410]) await runAt(seconds);
  expect((await world.outbox()).slice(2)).toEqual(["2 join chat", "2 join pager"]);
  expect((await world.messages()).at(-1)?.message).toMatchObject({ was: "Probably an attack" });
});

test("a verdict that turns is one message on each channel, which says the class and the severity of now", async () => {
  const id = await world.openSpike(0, { severity: "error", score: 9 });
  const { runAt } = createProcess();
  await store(id, { counts: { ...verdictOf().counts, addresses: 40 } });
  await runAt(0);
  await store(id, { look: "minute", said: "unclear", odds: 0.4 });
  await runAt(60);
  await store(id, { look: "five-minutes", said: "misfire", likeliest: "misfire" });
  await runAt(300);
  await runAt(310);
  await store(id, { look: "half-hour", said: "misfire", likeliest: "misfire", odds: 0.95 });
  await runAt(1_800);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager", "2 turned chat", "2 turned pager"]);
  const said = (await world.messages()).map(({ message }) => [message.severity, message.verdict?.said]);
  expect(said).toEqual([
    ["critical", "attack"],
    ["critical", "attack"],
    ["warning", "misfire"],
    ["warning", "misfire"],
  ]);
});

test.each(VERDICTS.filter((said) => said !== "attack"))(
  "a critical spike of a rule alone is a warning if its verdict says %s, and pages once a later one says attack",
  async (said) => {
    const id = await world.openSpike(0, { severity: "critical", addresses: 90, mainSenders: 80, score: 12 });
    const { runAt } = createProcess();
    await store(id, { said });
    await runAt(0);
    await store(id, { look: "minute", said, odds: 0.95 });
    await runAt(60);
    expect((await world.messages()).map(({ message }) => message.severity)).toEqual(["warning", "warning"]);
    await store(id, { look: "half-hour", counts: { ...verdictOf().counts, addresses: 90 } });
    await runAt(1_800);
    expect((await world.messages()).map(({ message }) => message.severity).slice(2)).toEqual([
      "critical",
      "critical",
    ]);
  },
);

test("a verdict of a resolved alert notifies nobody", async () => {
  const id = await world.openSpike();
  const { runAt } = createProcess();
  await store(id, { said: "unclear" });
  await runAt(0);
  await world.closeSpike(id, 20);
  await runAt(1_200);
  await store(id, { look: "half-hour" });
  await runAt(1_800);
  expect((await world.outbox()).slice(2)).toEqual(["2 resolved chat", "2 resolved pager"]);
});

test("a message says how a person marked the same rule and path before", async () => {
  const mark = { mark: "misfire", markedAt: at(-2_880), openedAt: at(-3_000), closedAt: at(-2_900) } as const;
  await world.openSpike(-3_000, mark);
  await world.openSpike(-3_000, { ...mark, ruleId: "941100", mark: "attack" });
  const id = await world.openSpike();
  await store(id);
  await createProcess().runAt(0);
  const messages = (await world.messages()).filter(({ message }) => message.verdict !== undefined);
  expect(messages[0]?.message.marked).toBe("You called this a misfire on 18 November.");
});

test("a masked key sees neither the matched text nor an address that the request quotes", async () => {
  const id = await world.openSpike();
  const { sample } = verdictOf();
  const quoted = "X-Forwarded-For 203.0.113.7";
  const url = "https://shop.example/?from=203.0.113.7";
  await store(id, { sample: sample && { ...sample, matched: quoted, url }, who: "203.0.113.7 sends all" });
  await createProcess().runAt(0);
  const [row] = await world.messages();
  expect(JSON.stringify(row?.message.verdict)).toContain("203.0.113.7");
  const masked = row && maskMessage(row.message);
  expect(masked?.verdict?.sample).toMatchObject({
    matched: null,
    url: "https://shop.example/?from=203.0.113.*",
  });
  expect(JSON.stringify(masked?.verdict)).not.toContain("203.0.113.7");
});

test("a masked key sees no command for a path with an address, because its masked form would try another path", async () => {
  const id = await world.openSpike();
  const { sample } = verdictOf();
  await store(id, { sample, said: "misfire" });
  await createProcess().runAt(0);
  const [row] = await world.messages();
  const see = (path: string) => {
    const command = `longwatch exclusion try --zone 101 --rule 942100 --path '${path}'`;
    const { exclusion } = maskMessage({ ...row!.message, exclusion: { command, reason: null } });
    return { exclusion, command };
  };
  for (const path of ["/ip/203.0.113.9/edit", "/a:::"])
    expect(see(path).exclusion).toEqual({
      command: null,
      reason: expect.stringMatching(/^Not shown/) as string,
    });
  const plain = see("/login");
  expect(plain.exclusion).toEqual({ command: plain.command, reason: null });
});

test("a sample request that writes a placeholder into its URL gives no command", () => {
  const { sample } = verdictOf();
  const spike = { zoneId: 101, ruleId: "942100" };
  const commandFor = (path: string) => {
    const url = `https://shop.example${path}`;
    return exclusionOf(spike, verdictOf({ said: "misfire", sample: sample && { ...sample, url } }))?.command;
  };
  for (const path of ["/admin/{...}", "/admin/{n}?q", "/admin/{slug}/edit"])
    expect(commandFor(path)).toBeNull();
  expect(commandFor("/admin/17")).toContain("/admin/{n}");
});
