import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type SilenceChoice, silenceCommand } from "#alerts/rules/message/commands.ts";
import { beatReplica } from "#db/postgres/leases.ts";
import { silences } from "#db/schema/alerts.ts";
import type { SpikeEvidence } from "#db/schema/spikes.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { toLine } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { EVIDENCE } from "../../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { SEED } from "../../support/random-tests.ts";
import { openAlertRows } from "./alert-rows.ts";
import { testBothWays } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";
import { runStoreCommand } from "./run-store-command.ts";

const silencesCommand = await loadSubject("silences");

const NOW = Date.UTC(2026, 10, 20, 15, 30);
let now: number;
let database: MigratedDatabase;
let rows: ReturnType<typeof openAlertRows>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  rows = openAlertRows(database);
  await beatReplica(database.db, {
    id: "one",
    host: "one",
    pid: 1,
    version: "0",
    roles: [],
    zoneIds: [101, 102],
  });
});

afterAll(() => database.drop());

beforeEach(async () => {
  now = NOW + 20_000;
  await rows.clear();
  await clearAudit(database);
});

const testWays = testBothWays(silencesCommand, () => ({ database, now }));

const WHY = ["--for", "2h", "--reason", "load test"];

/** The program's own part of each command line, as a shell reads it. */
function readWords(commands: readonly string[]): string[][] {
  const script = commands.map((line) => `printf '%s\\0' ${line.replace(/^longwatch /, "")}; printf '\\n\\0'`);
  const printed = execFileSync("sh", ["-c", script.join("\n")], { encoding: "utf8" });
  // No word of a command is a line feed alone.
  return printed
    .split("\n\0")
    .slice(0, -1)
    .map((words) => words.split("\0").slice(0, -1));
}

const wordsOf = (command: string) => readWords([command])[0] ?? [];

testWays.both(
  "a silence keeps what matches from the channels until it ends, and only that",
  async ({ run, by }) => {
    const added = await run(
      "add",
      "--zone",
      "101",
      "--rule",
      "942*",
      "--severity",
      "info,warning",
      ...WHY,
      ...by("alice"),
    );
    expect(added).toMatchObject({ code: 0, err: "" });
    expect(added.out).toMatch(
      /^silence #\d+ until 2026-11-20 17:30:20 UTC: zone 101 and rule 942\* and severity info or warning\nIt mutes no current alert/,
    );
    await rows.fire();
    await rows.fire({ ruleId: "931130" });
    expect(await rows.outbox()).toEqual(["1 first chat", "1 first pager"]);
    await rows.runAt(122);
    expect((await rows.outbox()).slice(2)).toEqual(["2 first chat", "2 first pager"]);
    expect(await rows.audit()).toMatchObject([
      { actor: expect.stringContaining("alice"), action: "silence.added", details: { reason: "load test" } },
    ]);
  },
);

testWays("a silence with the matchers of another one says so, whatever their order", async ({ run }) => {
  const first = await run("add", "--zone", "101,102", "--rule", "942*", ...WHY);
  expect(first.out).not.toContain("same matchers");
  const id = /^silence (#\d+)/.exec(first.out)?.[1] ?? "";
  const second = await run("add", "--rule", "942*", "--zone", "102", "--zone", "101", ...WHY);
  expect(second.out).toContain(`\nSilence ${id} with the same matchers stays in force`);
  await run("expire", id);
  const other = await run("add", "--zone", "101", "--rule", "942*", ...WHY);
  expect(other.out).not.toContain("same matchers");
});

testWays("a silence for 2h ends two hours after it was added, to the second", async ({ run }) => {
  const added = await run("add", "--zone", "101", ...WHY, "--json");
  expect(JSON.parse(added.out).expiresAt).toBe(new Date(NOW + 20_000 + 120 * MINUTE_MS).toISOString());
});

testWays("it says which alerts a silence mutes now", async ({ run }) => {
  const id = await rows.fire();
  await rows.fire({ zoneId: 102 });
  expect((await run("add", "--zone", "101", ...WHY)).out).toContain(`It mutes 1 current alert: #${id}.`);
});

/** Evidence without an address or network that most events share. */
const MIXED: SpikeEvidence = {
  ...EVIDENCE,
  from: "",
  to: "",
  total: 50,
  sampled: 50,
  firstEventAt: null,
  lastEventAt: null,
  top: { ...EVIDENCE.top, ip: [], asn: [] },
};

testWays(
  "the command in an alert's message silences the address that most of its events share",
  async ({ run }) => {
    const alertId = await rows.fire();
    const command = (await rows.messages())[0]?.message.howToSilence ?? "";
    expect(command).toBe("longwatch silences add --zone 101 --ip=203.0.113.7 --for 2h --reason 'why'");
    expect((await run(...wordsOf(command).slice(1))).out).toContain(`It mutes 1 current alert: #${alertId}.`);
  },
);

testWays(
  "without such an address the command silences that alert's rule, whatever the rule id is",
  async ({ run }) => {
    for (const ruleId of ["942100", "o'neil; touch /tmp/x #", "-rf", "a\u001b[2Jb", "942*x"]) {
      await rows.clear();
      const alertId = await rows.fire({ ruleId, evidence: MIXED });
      const [message] = await rows.messages();
      const command = message?.message.howToSilence ?? "";
      // People copy the command that a channel prints.
      expect(toLine(command, 400)).toBe(command);
      const [group, ...args] = wordsOf(command);
      expect(group).toBe("silences");
      const { code, out, err } = await run(...args);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toContain(`It mutes 1 current alert: #${alertId}.`);
      const [stored] = await database.db.select().from(silences);
      expect(stored?.matchers).toEqual({ zone: [101], rule: [ruleId] });
    }
  },
);

testWays("a rule that reads as a family is not silenced by accident", async ({ run }) => {
  const alertId = await rows.fire({ ruleId: "94*", evidence: MIXED });
  const command = (await rows.messages())[0]?.message.howToSilence ?? "";
  expect(command).toContain("--zone 101 --for 30m");
  const { code, err } = await run("add", "--alert", String(alertId), ...WHY);
  expect(code).toBe(2);
  expect(err).toContain(`Alert ${alertId} is about no rule that a silence can name. Silence its zone.`);
  expect(await database.db.select().from(silences)).toEqual([]);
});

test("for any rule the shell reads the command as the same words", () => {
  const text = fc.oneof(fc.string({ maxLength: 30 }), fc.string({ unit: "binary", maxLength: 30 }));
  const ruleIds = fc.sample(text, { numRuns: 100, seed: SEED });
  const toChoice = (ruleId: string): SilenceChoice => ({
    scope: "rule",
    matchers: { zone: [101], rule: [ruleId] },
  });
  const read = readWords(ruleIds.map((ruleId) => silenceCommand(7, [toChoice(ruleId)]) ?? ""));
  expect(read).toHaveLength(ruleIds.length);
  for (const [index, words] of read.entries()) {
    expect([
      ["--zone", "101", `--rule=${ruleIds[index]}`],
      ["--alert", "7", "--scope", "rule"],
    ]).toContainEqual(words.slice(2, -4));
    expect(words.slice(-4)).toEqual(["--for", "2h", "--reason", "why"]);
  }
});

testWays.both(
  "a silence of several alerts names what each is about, and the scope widens it",
  async ({ run }) => {
    const one = await rows.fire();
    const same = await rows.fire({ ruleId: "931130" });
    const other = await rows.fire({ ruleId: "941100", evidence: MIXED });
    const add = (...args: string[]) =>
      run("add", "--alert", `${one},${same}`, "--alert", String(other), ...args);
    const { code, err } = await add(...WHY);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const stored = async () => {
      const found = await database.db.select().from(silences).orderBy(silences.id);
      return found.map(({ matchers }) => matchers);
    };
    expect(await stored()).toEqual([
      { zone: [101], ip: ["203.0.113.7"] },
      { zone: [101], rule: ["941100"] },
    ]);
    expect(await rows.audit()).toMatchObject([{ action: "silence.added" }, { action: "silence.added" }]);
    await add("--scope", "rule", ...WHY);
    await add("--scope", "zone", ...WHY);
    expect((await stored()).slice(2)).toEqual([
      { zone: [101], rule: ["942100"] },
      { zone: [101], rule: ["931130"] },
      { zone: [101], rule: ["941100"] },
      { zone: [101] },
    ]);
    expect((await add("--scope", "everything", ...WHY)).err).toContain("one of source, rule, zone");
  },
);

testWays.both(
  "a silence is extended from its end, at most 90 days from now, and not after its end",
  async ({ run, by }) => {
    const added = await run("add", "--zone", "101", ...WHY);
    const id = /^silence #(\d+)/.exec(added.out)?.[1] ?? "";
    expect((await run("extend", id, "--for", "1h", ...by("bob"))).out).toBe(
      `silence #${id} ends 2026-11-20 18:30:20 UTC.\n`,
    );
    expect((await rows.audit()).slice(1)).toMatchObject([
      {
        actor: expect.stringContaining("bob"),
        action: "silence.extended",
        subject: `silence ${id}`,
        details: { expiresAt: "2026-11-20T18:30:20.000Z" },
      },
    ]);
    expect((await run("extend", id, "--for", "90d")).err).toContain(
      "must let the silence end 1 minute to 90 days from now",
    );
    expect(await run("extend", "999999", "--for", "1h")).toMatchObject({ code: 1 });
    now = NOW + 4 * 3_600_000;
    const late = await run("extend", id, "--for", "1d");
    expect(late).toMatchObject({ code: 2 });
    expect(late.err).toContain(`Silence ${id} has ended`);
  },
);

testWays("the list says how many alerts a silence mutes and how severe the worst is", async ({ run }) => {
  await rows.fire({ severity: "critical" });
  await rows.fire({ ruleId: "931130" });
  await run("add", "--zone", "101", ...WHY);
  expect((await run("list")).out).toMatch(/ 2, critical +zone 101 /);
  const { items } = JSON.parse((await run("list", "--json")).out);
  expect(items).toMatchObject([{ mutes: { count: 2, alerts: [{ severity: "critical" }, {}] } }]);
});

testWays.both(
  "a list shows what is in force, what is over and what cannot be read, harmless to a terminal",
  async ({ run, by }) => {
    expect((await run("list")).out).toBe("No silences.\n");
    await run("add", "--zone", "101,102", "--for", "30m", "--reason", "short", ...by("bob"));
    await run("add", "--kind", "new-rule", "--for", "7d", "--reason", "new rules", ...by("bob"));
    await rows.silence({ nonsense: "\u001b[2J" }, 600);
    const lines = (await run("list")).out.split("\n");
    expect(lines[0]).toMatch(
      /^SILENCE +STATE +ENDS IN +FROM \(UTC\) +TO \(UTC\) +MUTES +ALERTS +BY +REASON$/,
    );
    expect(lines[3]).toMatch(
      /^#\d+ +active +\d+ min +2026-11-20 15:30 +2026-11-20 16:00:20 +0 +zone 101 or 102 +bob +short$/,
    );
    expect(lines[1]).toContain("(mutes nothing: its matchers cannot be read)");
    expect(lines[2]).toContain("kind new-rule");
    now = NOW + 32 * MINUTE_MS;
    expect((await run("list")).out).not.toContain("short");
    expect((await run("list", "--state", "all")).out).toMatch(/expired .* bob +short/);
    const { items, next } = JSON.parse((await run("list", "--state", "all", "--json")).out) as {
      items: { state: string; expiresAt: string }[];
      next: null;
    };
    expect(items.map(({ state }) => state)).toEqual(["active", "active", "expired"]);
    expect(items[2]?.expiresAt).toBe("2026-11-20T16:00:20.000Z");
    expect(next).toBeNull();
    const only = await run("list", "--state", "expired", "--json");
    expect(JSON.parse(only.out)).toMatchObject({ items: [{ state: "expired" }] });
  },
);

testWays(
  "of two concurrent expiries of a silence one succeeds, and the muted alert then notifies",
  async ({ run, by }) => {
    await run("add", "--zone", "101", ...WHY);
    await rows.fire();
    expect(await rows.outbox()).toEqual([]);
    const [silence] = await database.db.select().from(silences);
    const id = String(silence?.id);
    now = NOW + MINUTE_MS;
    const ran = await Promise.all([run("expire", id, ...by("bob")), run("expire", `#${id}`, ...by("carol"))]);
    expect(ran.map(({ code }) => code)).toEqual([0, 0]);
    expect(ran.map(({ out }) => out).sort()).toEqual([
      `silence #${id} is expired.\n`,
      `silence #${id} was already expired; nothing was changed.\n`,
    ]);
    await rows.runAt(2);
    expect(await rows.outbox()).toEqual(["2 first chat", "2 first pager"]);
    expect((await rows.audit()).map(({ action }) => action)).toEqual(["silence.added", "silence.expired"]);
    expect(await run("expire", "4711")).toMatchObject({ code: 1 });
  },
);

testWays(
  "without subject, end or reason no silence is added, and every mistake is reported at once",
  async ({ run }) => {
    const empty = await run("add");
    expect(empty.code).toBe(2);
    expect(empty.err).toContain("longwatch silences add: 3 mistakes");
    const wrong = await run(
      "add",
      "--zone",
      "0,x",
      "--severity",
      "loud",
      "--kind",
      "selfish",
      "--alert",
      "1",
      "--for",
      "91d",
      "--reason",
      "",
    );
    for (const said of [
      '--zone "0"',
      '--zone "x"',
      '--severity "loud"',
      '--kind "selfish"',
      "--alert must be given without",
      "--for",
      "--reason",
    ])
      expect(wrong.err).toContain(said);
    for (const duration of ["2", "0h", "-1h", "1w", "1e3h"])
      expect((await run("add", "--zone", "101", `--for=${duration}`, "--reason", "x")).code).toBe(2);
    expect(await database.db.select().from(silences)).toEqual([]);
  },
);

test.each(["add", "list", "expire"])("%s explains itself with examples", async (name) => {
  const { code, out } = await runStoreCommand(silencesCommand, {}, [name, "--help"], { now });
  expect(code).toBe(0);
  expect(out).toContain(`Examples:\n  npm run -s longwatch -- silences ${name}`);
});
