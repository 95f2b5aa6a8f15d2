import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { silences } from "#db/schema/alerts.ts";
import { auditEntries } from "#db/schema/people.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { createAlertWorld } from "../../alerts/alert-world.ts";
import { attackerOf, incidentOf } from "../../alerts/incident.ts";
import { NOW } from "../../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { testBothWays } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";
import { runStoreCommand } from "./run-store-command.ts";

const alertsCommand = await loadSubject("alerts");
const HOSTILE = "\u001b[2J\u202ecurl/8.5";
const ATTACKERS = [
  attackerOf("203.0.113.1", 0, { lastMinutes: 300 }),
  attackerOf("203.0.113.2", 0, { lastMinutes: 300, role: "joined" }),
  attackerOf(HOSTILE, 0, { kind: "ips_per_ua", lastMinutes: 300, role: "apart" }),
];

let database: MigratedDatabase;
let world: ReturnType<typeof createAlertWorld>;
/** The number of the incident's alert. */
let id: number;

beforeAll(async () => {
  database = await createMigratedDatabase();
  world = createAlertWorld(database);
});
afterAll(() => database.drop());
beforeEach(async () => {
  await clearAudit(database);
  await world.clear();
  const memberOf = await world.openSpike(0, incidentOf(...ATTACKERS));
  for (const ruleId of ["930100", "930110"]) await world.openSpike(0, { ruleId, memberOf });
  await world.openSpike(0, { ruleId: "942100" });
  await raise(1);
  id = (await world.alerts()).find(({ kind }) => kind === "sources")?.id ?? 0;
});

const raise = (minutes: number) => world.runAt(minutes, { channels: ["chat"] });
const testWays = testBothWays(alertsCommand, () => ({ database, now: NOW + 2 * MINUTE_MS }));

/** What the channels were sent of the incident since its first message. */
async function sent(): Promise<string[]> {
  return (await world.messages())
    .filter(({ message }) => message.alertId === id)
    .slice(1)
    .map(({ message }) => `${message.reason}: ${message.headline}`);
}

testWays("an incident is shown with its attackers and its rules, harmless to a terminal", async ({ run }) => {
  const { code, out } = await run("show", `${id}`);
  expect(code).toBe(0);
  expect(out).toMatch(/^Attackers$/m);
  expect(out).toMatch(/^ *active .* UTC {2}203\.0\.113\.2 triggered 41 different rules/m);
  expect(out).toMatch(/930100: 50 in 3 min, usually 2 · warning/);
  for (const hidden of ["\u001b", "\u202e"]) expect(out).not.toContain(hidden);
});

testWays(
  "the rules of an incident are listed, and their alerts say what they are part of",
  async ({ run }) => {
    const { out } = await run("list", "--incident", `${id}`);
    expect(out.match(/rule 930\d{3}/g)?.sort()).toEqual(["rule 930100", "rule 930110"]);
    expect(out.match(new RegExp(`, part of #${id} `, "g"))).toHaveLength(2);
    expect(out).not.toContain("942100");
    const { items } = JSON.parse((await run("list", "--json")).out) as {
      items: { ruleId: string; incidentId: number | null }[];
    };
    expect(items.map((one) => `${one.ruleId} ${one.incidentId}`).sort()).toEqual(
      [`(sources) null`, `930100 ${id}`, `930110 ${id}`, `942100 null`].sort(),
    );
  },
);

testWays(
  "one attacker is resolved: messages no longer name it, and the alert goes on",
  async ({ run, by }) => {
    const { code, out } = await run("resolve", `${id}`, "--attacker", "203.0.113.1", ...by("alice"));
    expect(code).toBe(0);
    expect(out).toContain(`attacker 203.0.113.1 of alert #${id} is resolved by `);
    const shown = JSON.parse((await run("show", `${id}`, "--json")).out) as {
      state: string;
      attackers: { key: string; state: string }[];
    };
    expect(shown.state).toBe("firing");
    expect(shown.attackers.find(({ key }) => key === "203.0.113.1")?.state).toBe("resolved");
    const entry = (await database.db.select().from(auditEntries)).find(({ action }) =>
      action.startsWith("alert."),
    );
    // An erasure changes no audit entry.
    expect(entry).toMatchObject({
      action: "alert.attacker_resolved",
      subject: `alert ${id}`,
      details: { attacker: "rules_per_ip=203.0.113.*" },
    });
    await raise(300);
    const [repeat] = await sent();
    expect(repeat).toMatch(/^repeat: 2 attackers in zone 101: /);
    expect(repeat).not.toContain("203.0.113.1");
  },
);

testWays("the alert is resolved with the last attacker that is active", async ({ run }) => {
  for (const key of ["203.0.113.1", "rules_per_ip=203.0.113.2"])
    expect((await run("resolve", `${id}`, "--attacker", key)).code).toBe(0);
  expect(await sent()).toEqual([]);
  const { out } = await run("resolve", `${id}`, "--attacker", HOSTILE);
  expect(out).toContain(`alert #${id} is resolved by `);
  expect(await sent()).toEqual([expect.stringMatching(/^resolved: Resolved by .*incident in zone 101$/)]);
  const states = (await world.alerts()).map(({ ruleId, state }) => `${ruleId} ${state}`).sort();
  expect(states).toEqual(["(sources) resolved", "930100 resolved", "930110 resolved", "942100 firing"]);
});

testWays.both("one attacker is silenced, by its own address and no other", async ({ run }) => {
  const args = ["silence", `${id}`, "--attacker", "203.0.113.2", "--for", "2h", "--note", "our own scan"];
  const { code, out } = await run(...args);
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^alert #${id} is silenced by silence #\\d+ of `));
  const stored = await database.db.select().from(silences);
  expect(stored.map(({ matchers }) => matchers)).toEqual([{ zone: [101], ip: ["203.0.113.2"] }]);
  await database.db.delete(silences);
});

testWays.both(
  "an attacker that no silence can name is refused, and one that does not exist",
  async ({ run }) => {
    const silence = (key: string) => run("silence", `${id}`, "--attacker", key, "--for", "2h", "--note", "x");
    expect(await silence(HOSTILE)).toMatchObject({
      code: 1,
      out: expect.stringContaining("No silence can name this attacker of alert"),
    });
    for (const act of [silence, (key: string) => run("resolve", `${id}`, "--attacker", key)])
      expect(await act("203.0.113.99")).toMatchObject({
        code: 1,
        out: expect.stringContaining(`Alert ${id} has no such attacker`),
      });
    expect(await database.db.$count(silences)).toBe(0);
  },
);

testWays("an attacker needs one alert", async ({ run }) => {
  for (const args of [
    ["resolve", `${id}`, "4711"],
    ["resolve", "--zone", "101"],
  ]) {
    const { code, err } = await run(...args, "--attacker", "203.0.113.1");
    expect([code, err]).toEqual([2, expect.stringContaining("must be given with the number of one alert")]);
  }
});

test("ten people who resolve the same attacker at once resolve it once", async () => {
  const args = ["resolve", `${id}`, "--attacker", "203.0.113.1"];
  const env = { DATABASE_URL: database.url };
  const ran = await Promise.all(
    Array.from({ length: 10 }, () => runStoreCommand(alertsCommand, env, args, { now: NOW + MINUTE_MS })),
  );
  expect(ran.map(({ code }) => code)).toEqual(Array(10).fill(0));
  expect((await world.spikes())[0]?.resolvedAttackers).toEqual(["rules_per_ip=203.0.113.1"]);
});
