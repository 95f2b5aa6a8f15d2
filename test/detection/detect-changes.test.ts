import { eq } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { parseDetails, Transitions } from "#alerts/rules/alert-record.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { createRaiseAlertsJob } from "#jobs/alerts/raise-alerts.ts";
import { createDetectRuleChangesJob } from "#jobs/detection/detect-rule-changes.ts";
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { alertMessage } from "#model/alert-message.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { silent } from "../ingest/ingest-support.ts";
import { END, openDetectWorld } from "./detect-support.ts";
import { makeEvent, runJob, ZONE } from "./trend-support.ts";

const { database, world } = await openDetectWorld();
const DAY = MINUTES_PER_DAY;
const FIRST = END - 4.5 * DAY;
beforeEach(() => database.pool.query("truncate alerts, notifications cascade"));

let now = 0;
const deps = { database, clock: () => now, log: silent, afterSpikes: () => undefined };
const createDetector = () => createDetectRuleChangesJob(deps);
const NOTHING = "no rule changed its action, fell silent or has events again";
const toMs = (minute: number) => minute * MINUTE_MS;

function at(minute: number) {
  now = toMs(minute);
}

async function raise(): Promise<void> {
  const routing = () => routeToAll(["chat"]);
  const job = createRaiseAlertsJob({ ...deps, routing, zoneIds: [ZONE], afterAlerts: async () => {} });
  await runJob(job);
}

async function messages() {
  const rows = await database.db.select().from(notifications).orderBy(notifications.id);
  return rows.map(({ reason, content }) => ({ ...alertMessage.parse(content), sent: reason }));
}

async function listed() {
  const rows = await database.db.select().from(alerts).orderBy(alerts.id);
  return rows.map(({ state, details, transitions }) => ({
    state,
    message: parseDetails(details).message,
    mutedBy: Transitions.parse(transitions).flatMap(({ mutedBy }) => mutedBy ?? []),
  }));
}

/** One event every `every` minutes of [from, to), of three addresses in turn. */
function events(
  ruleId: string,
  [from, to]: readonly [number, number],
  every: number,
  action = "log",
): WafEvent[] {
  return Array.from({ length: Math.ceil((to - from) / every) }, (_, i) => {
    const minute = from + i * every;
    const [ip, logId] = [`203.0.113.${i % 3}`, `${ruleId}/${minute}`];
    return makeEvent({ ruleId, action, ip, logId, occurredAt: toMs(minute) });
  });
}

test("a rule that begins to block is one alert, whoever looks, how often, and after which restart", async () => {
  await world.keep([
    ...events("942100", [FIRST, END - 120], 60),
    ...events("942100", [END - 20, END - 8], 2, "block"),
    ...events("920100", [FIRST, END], 30, "Blocked"),
  ]);
  at(END);
  const [one, other] = [createDetector(), createDetector()];
  await Promise.all([runJob(one), runJob(other)]);
  for (const job of [one, other, createDetector()]) expect(await runJob(job)).toBe(NOTHING);
  const [spike, ...others] = await world.readSpikes();
  expect(others).toEqual([]);
  expect(spike).toMatchObject({ kind: "action-change", severity: "warning", ruleId: "(action-change)" });
  expect(spike?.changes).toMatchObject([{ ruleId: "942100", since: END - 20, endedAt: null }]);
  expect(spike?.evidence.top.ip.map(({ count }) => count)).toEqual([2, 2, 2]);

  await Promise.all([raise(), raise()]);
  at(END + 10 * 60);
  await raise();
  const [message, ...more] = await messages();
  expect(more).toEqual([]);
  expect(message?.headline).toBe(
    "SQL injection: rule 942100 in zone 101 blocks since 12:10 UTC: 4 of 4 events of 3 addresses; before, 100 % of 106 were logged",
  );

  at(END + DAY);
  await runJob(createDetector());
  await raise();
  expect((await messages()).map(({ sent }) => sent)).toEqual(["first", "resolved"]);
  expect((await world.readSpikes()).map(({ closedAt }) => closedAt?.getTime())).toEqual([toMs(END + DAY)]);
});

test("a zone that is switched to blocking is one message that names all rules, and the rare ones follow", async () => {
  const rules = Array.from({ length: 40 }, (_, i) => `9420${i + 10}`);
  const rare = ["941100", "941110"];
  await world.keep([
    ...rules.flatMap((ruleId) => events(ruleId, [FIRST, END - 180], 120)),
    ...rare.flatMap((ruleId) => events(ruleId, [FIRST, END - 180], 120)),
    ...rules.flatMap((ruleId) => events(ruleId, [END - 60, END - 40], 5, "block")),
  ]);
  at(END - 30);
  const flips = createDetector();
  await runJob(flips);
  await raise();
  const [message] = await messages();
  expect(message?.headline).toMatch(
    /^40 rules in zone 101 block since 11:30 UTC: 942010, 942011, 942012 and 37 more; /,
  );
  expect(message?.rules).toEqual(rules);
  const named = (message?.details ?? []).join(" ");
  for (const ruleId of rules) expect(named).toContain(ruleId);

  await world.keep(
    rare.flatMap((ruleId, i) => events(ruleId, [END - 28 + 3 * i, END - 24 + 3 * i], 1, "block")),
  );
  for (let minute = END - 28; minute < END + 5; minute += 1) {
    at(minute);
    await runJob(flips);
    await raise();
  }
  const later = await messages();
  expect(later.map(({ sent }) => sent)).toEqual(["first", "join"]);
  expect(later[1]?.rules).toEqual([...rules, ...rare]);
  expect(await world.readSpikes()).toHaveLength(1);
});

test("after a person has resolved the alert, the next change is another alert, and the first one notifies nobody again", async () => {
  await world.keep([
    ...events("942100", [FIRST, END - 180], 60),
    ...events("941100", [FIRST, END - 180], 60),
    ...events("942100", [END - 60, END - 40], 4, "block"),
  ]);
  at(END - 30);
  const flips = createDetector();
  await runJob(flips);
  await raise();
  await database.db.update(alerts).set({ state: "resolved", resolvedAt: new Date(now) });
  at(END - 29);
  await runJob(flips);
  await world.keep(events("941100", [END - 20, END - 10], 2, "challenge"));
  at(END);
  await Promise.all([runJob(flips), runJob(createDetector())]);
  await raise();
  const [first, second, ...others] = await world.readSpikes();
  expect(others).toEqual([]);
  expect([first?.closedAt, second?.closedAt]).toEqual([new Date(toMs(END - 29)), null]);
  expect(second?.changes?.map(({ ruleId }) => ruleId)).toEqual(["941100"]);
  expect((await messages()).at(-1)?.headline).toContain(
    "rule 941100 in zone 101 blocks or challenges since 12:10 UTC",
  );
});

test("a rule that falls silent has one alert that notifies nobody, and that ends when the rule has events again", async () => {
  await world.keep([
    ...events("942100", [FIRST, END - 300], 5),
    ...events("920100", [FIRST, END], 5),
    ...events("930100", [FIRST, END], 5),
  ]);
  at(END);
  await Promise.all([runJob(createDetector()), runJob(createDetector())]);
  expect(await runJob(createDetector())).toBe(NOTHING);
  await Promise.all([raise(), raise()]);
  const [spike, ...others] = await world.readSpikes();
  expect(others).toEqual([]);
  expect(spike).toMatchObject({ kind: "silent-rule", changes: [{ ruleId: "942100", since: END - 305 }] });
  const [alert] = await listed();
  expect(alert?.message).toMatchObject({ severity: "info", advice: { state: "unavailable" } });
  expect(alert?.mutedBy).toEqual(["digest"]);
  expect(alert?.message?.headline).toBe(
    "SQL injection: rule 942100 in zone 101 is silent since 07:25 UTC: about 60 events were to be expected since then",
  );

  await world.keep(events("942100", [END + 2, END + 3], 1));
  at(END + 5);
  await Promise.all([runJob(createDetector()), runJob(createDetector())]);
  await raise();
  expect((await listed()).map(({ state, message }) => `${state}: ${message?.headline}`)).toEqual([
    "resolved: SQL injection: rule 942100 in zone 101 has events again; silent since 07:25 UTC for 5 h 10 min",
  ]);
  expect(await messages()).toEqual([]);
  expect((await world.readSpikes()).map(({ closedAt }) => closedAt?.getTime())).toEqual([toMs(END + 5)]);
});

test("neither unknown hours nor a zone that is silent as a whole are silent rules", async () => {
  const usual = (until: number) =>
    ["942100", "920100"].flatMap((ruleId) => events(ruleId, [FIRST, until], 5));
  const gaps = Array.from({ length: 12 }, (_, i) => Math.floor(END / 60) - i);
  // The other rule goes on in an hour of which only a part was stored.
  await world.keep([...usual(END - 700), ...events("920100", [END - 700, END], 5)], { gaps });
  at(END);
  expect(await runJob(createDetector())).toBe(NOTHING);
  expect(await world.readSpikes()).toEqual([]);

  await world.clear();
  await world.keep(usual(END - 300));
  expect(await runJob(createDetector())).toBe(NOTHING);
  expect(await world.readSpikes()).toEqual([]);
});

test("a rule that stays silent raises no other alert after a person has resolved the first", async () => {
  await world.keep([...events("942100", [FIRST, END - 300], 5), ...events("920100", [FIRST, END], 5)]);
  at(END);
  const job = createDetector();
  await runJob(job);
  await raise();
  await database.db
    .update(alerts)
    .set({ state: "resolved", resolvedAt: new Date(now) })
    .where(eq(alerts.kind, "silent-rule"));
  for (const minute of [END + 5, END + 10, END + 15]) {
    at(minute);
    await runJob(job);
    await raise();
  }
  expect(await listed()).toHaveLength(1);
  expect(await world.readSpikes()).toHaveLength(1);
});

test("a rule that is blocked only in requests that other rules match, too, has not changed its action", async () => {
  const alone = events("942100", [FIRST, END], 5);
  const together = Array.from({ length: 6 }, (_, i) =>
    ["942100", "930100"].map((ruleId) =>
      makeEvent({
        ruleId,
        action: "block",
        ip: `198.51.100.${i}`,
        url: "https://shop.example/?f=../../etc/passwd",
        logId: `${ruleId}/together/${i}`,
        occurredAt: toMs(END - 6 + i) + 1_000,
      }),
    ),
  ).flat();
  await world.keep([...alone, ...together]);
  at(END);
  expect(await runJob(createDetector())).toBe(NOTHING);
});
