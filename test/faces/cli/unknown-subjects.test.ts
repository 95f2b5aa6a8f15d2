import type { Command } from "commander";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Config } from "#config/config.ts";
import { beatReplica } from "#db/postgres/leases.ts";
import { silences } from "#db/schema/alerts.ts";
import { backtestCommand } from "#faces/cli/backtest/backtest.ts";
import { channelsCommand } from "#faces/cli/channels/channels.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import type { StoreIo } from "#faces/cli/store/store-command.ts";
import { verifyCommand } from "#faces/cli/verify/verify.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { insertHours, NOW, SEALED } from "./coverage-world.ts";
import { runStoreCommand } from "./run-store-command.ts";

const alertsCommand = await loadSubject("alerts");
const coverageCommand = await loadSubject("coverage");
const deliveriesCommand = await loadSubject("deliveries");
const gapsCommand = await loadSubject("gaps");
const silencesCommand = await loadSubject("silences");

let database: MigratedDatabase;

/** 101 is stored and no longer watched, 102 is watched and nothing is stored of it, 103 is configured here. */
beforeAll(async () => {
  database = await createMigratedDatabase();
  await insertHours(database, Date.UTC(2026, 10, 20, 0), 14, SEALED);
  await beatReplica(database.db, { id: "one", host: "one", pid: 1, version: "0", roles: [], zoneIds: [102] });
  await database.pool.query("insert into channel_states (channel) values ('former')");
  await database.pool.query(
    `insert into rule_buckets (zone_id, rule_id, width, starts_at, total, blocked)
    select 101, '942100', width, '2026-11-20T00:00:00Z', 7, 7 from unnest('{60,3600,86400}'::integer[]) as width`,
  );
});

afterAll(() => database.drop());

type Create = (readConfig: () => Config, io: StoreIo) => Command;

function run(create: Create, typed: string) {
  const environment = {
    DATABASE_URL: database.url,
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "103",
    LONGWATCH_PSEUDONYM_KEY: "a-pseudonym-key-of-this-test-alone",
    LONGWATCH_SLACK_WEBHOOK_URL: "https://hooks.example.com/1",
  };
  return runStoreCommand(create, environment, typed.split(" "), { now: NOW });
}

const ZONES: readonly [Create, string][] = [
  [coverageCommand, "--zone"],
  [gapsCommand, "--zone"],
  [backtestCommand, "--zone"],
  [verifyCommand, "--from -24h --to now --zone"],
  [eraseCommand, "--ip 203.0.113.7 --dry-run --zone"],
  [(read, io) => alertsCommand(read, io), "list --zone"],
  [(read, io) => silencesCommand(read, io), "add --for 2h --reason x --zone"],
];

test.each(
  ZONES.map(([create, typed]) => ({ name: create(() => ({}) as Config, silentIo()).name(), create, typed })),
)("$name of a zone that does not exist fails and names those that do", async ({ create, typed }) => {
  const { code, out, err } = await run(create, `${typed} 1010`);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(
    '--zone "1010" must be a shield zone that is configured or has stored data (101, 102, 103)',
  );
});

test.each(ZONES.filter(([create]) => create !== verifyCommand).map(([create, typed]) => ({ create, typed })))(
  "a zone that is only stored, only watched or only configured is no mistake: $typed",
  async ({ create, typed }) => {
    for (const zone of [101, 102, 103])
      expect(await run(create, `${typed} ${zone}`)).toMatchObject({ code: 0 });
  },
);

test("a channel that does not exist fails and names those that do, with what was probably meant", async () => {
  const channels: Create = (read, io) => channelsCommand(read, read, io);
  for (const [create, typed, flag] of [
    [deliveriesCommand, "list --channel slak", "--channel"],
    [channels, "replay slak", "<name>"],
  ] as const) {
    const { code, out, err } = await run(create, typed);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(
      `${flag} "slak" must be a channel that is configured or was used before (former, slack, terminal): did you mean slack?`,
    );
  }
  for (const name of ["former", "slack", "terminal"]) {
    expect(await run(deliveriesCommand, `list --channel ${name}`)).toMatchObject({ code: 0 });
    expect(await run(channels, `replay ${name}`)).toMatchObject({ code: 0 });
  }
});

test("a rule pattern that can never match is a mistake, and nothing is silenced", async () => {
  const rule = "must be a rule's id, or a family such as 942*; a * may only be at the end";
  for (const pattern of ["*42", "9*2", "94*1*"]) {
    const added = await run(silencesCommand, `add --rule ${pattern} --for 2h --reason x`);
    expect(added).toMatchObject({ code: 2, out: "" });
    expect(added.err).toContain(`--rule "${pattern}" ${rule}`);
    expect((await run(alertsCommand, `list --rule ${pattern}`)).err).toContain(`--rule "${pattern}" ${rule}`);
  }
  const self = await run(silencesCommand, "add --kind self --rule 942* --for 2h --reason x");
  expect(self).toMatchObject({ code: 2, out: "" });
  expect(self.err).toContain("--rule must be left out with kind self");
  // The silences of the tests above name zones.
  const stored = await database.db.select().from(silences);
  expect(stored.filter(({ matchers }) => "rule" in (matchers as object))).toEqual([]);
});

test("a backtest of a rule without events fails and names the rules that have some", async () => {
  const { code, out, err } = await run(backtestCommand, "--zone 101 --rule 94210");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(
    '--rule "94210" must be a rule with events in zone 101 (942100): did you mean 942100?',
  );
  expect(await run(backtestCommand, "--zone 101 --rule 942100")).toMatchObject({ code: 0 });
});

test("alerts of an incident that does not exist are a mistake", async () => {
  const { code, err } = await run(alertsCommand, "list --incident 4711");
  expect(code).toBe(2);
  expect(err).toContain('--incident "4711" must be the number of a stored alert');
});

function silentIo(): StoreIo {
  return {} as StoreIo;
}
