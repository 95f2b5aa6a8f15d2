import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { silences } from "../../db/schema/silences.ts";
import { beatReplica } from "../../db/service/replicas.ts";
import { silenceCommand } from "../../src/alerting/message/silence-command.ts";
import { silencesCommand } from "../../src/cli/silences/silences.ts";
import { toLine } from "../../src/lib/plain-text.ts";
import { MINUTE_MS } from "../../src/lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { openAlertRows } from "./alert-rows.ts";
import { clearAudit } from "./clear-audit.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
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
  await rows.clear();
  await clearAudit(database);
});

function run(args: readonly string[], now = NOW + 20_000) {
  return runStoreCommand(silencesCommand, { DATABASE_URL: database.url }, args, { now });
}

const WHY = ["--for", "2h", "--reason", "load test", "--by", "alice"];

/** The program's own part of a command line, as a shell reads it. */
function wordsOf(command: string): string[] {
  const own = command.replace(/^longwatch /, "");
  const printed = execFileSync("sh", ["-c", `printf '%s\\0' ${own}`], { encoding: "utf8" });
  return printed.split("\0").slice(0, -1);
}

test("a silence keeps what matches from the channels until it ends, and only that", async () => {
  const added = await run(["add", "--zone", "101", "--rule", "942*", "--severity", "info,warning", ...WHY]);
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
    { actor: "alice", action: "silence.added", details: { reason: "load test" } },
  ]);
});

test("a silence with the matchers of another one says so, whatever their order", async () => {
  const first = await run(["add", "--zone", "101,102", "--rule", "942*", ...WHY]);
  expect(first.out).not.toContain("same matchers");
  const id = /^silence (#\d+)/.exec(first.out)?.[1] ?? "";
  const second = await run(["add", "--rule", "942*", "--zone", "102", "--zone", "101", ...WHY]);
  expect(second.out).toContain(`\nSilence ${id} with the same matchers stays in force`);
  await run(["expire", id]);
  const other = await run(["add", "--zone", "101", "--rule", "942*", ...WHY]);
  expect(other.out).not.toContain("same matchers");
});

test("a silence for 2h ends two hours after it was added, to the second", async () => {
  const added = await run(["add", "--zone", "101", ...WHY, "--json"]);
  expect(JSON.parse(added.out).expiresAt).toBe(new Date(NOW + 20_000 + 120 * MINUTE_MS).toISOString());
});

test("it says which alerts a silence holds back now", async () => {
  const id = await rows.fire();
  await rows.fire({ zoneId: 102 });
  expect((await run(["add", "--zone", "101", ...WHY])).out).toContain(`It mutes 1 current alert: #${id}.`);
});

test("the command in an alert's message silences that alert's rule, whatever the rule id is", async () => {
  for (const ruleId of [
    "942100",
    "o'neil; touch /tmp/x #",
    "-rf",
    "$(reboot)",
    "`id`",
    "a\u001b[2Jb",
    "a\nb",
    "942*x",
  ]) {
    await rows.clear();
    const alertId = await rows.fire({ ruleId });
    const [message] = await rows.messages();
    const command = message?.message.howToSilence ?? "";
    // People copy the command that a channel prints.
    expect(toLine(command, 400)).toBe(command);
    const [group, ...args] = wordsOf(command);
    expect(group).toBe("silences");
    const { code, out, err } = await run(args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`It mutes 1 current alert: #${alertId}.`);
    const [stored] = await database.db.select().from(silences);
    expect(stored?.matchers).toEqual({ zone: [101], rule: [ruleId] });
  }
});

test("a rule that reads as a family is not silenced by accident", async () => {
  const alertId = await rows.fire({ ruleId: "94*" });
  const command = (await rows.messages())[0]?.message.howToSilence ?? "";
  expect(command).toContain(`--alert ${alertId}`);
  const { code, err } = await run(wordsOf(command).slice(1));
  expect(code).toBe(2);
  expect(err).toContain("which would mean a family");
  expect(await database.db.select().from(silences)).toEqual([]);
});

test("for any rule the shell reads the command as the same words", () => {
  const text = fc.oneof(fc.string({ maxLength: 30 }), fc.string({ unit: "binary", maxLength: 30 }));
  fc.assert(
    fc.property(text, (ruleId) => {
      const words = wordsOf(silenceCommand({ alertId: 7, zoneId: 101, ruleId }));
      const subject = words.slice(2, -4);
      expect([
        ["--zone", "101", `--rule=${ruleId}`],
        ["--alert", "7"],
      ]).toContainEqual(subject);
      expect(words.slice(-4)).toEqual(["--for", "2h", "--reason", "why"]);
    }),
    { numRuns: 60 },
  );
});

test("a list shows what is in force, what is over and what cannot be read, harmless to a terminal", async () => {
  expect((await run(["list"])).out).toBe("No silences.\n");
  await run(["add", "--zone", "101,102", "--for", "30m", "--reason", "short", "--by", "bob"]);
  await run(["add", "--kind", "new-rule", "--for", "7d", "--reason", "new rules", "--by", "bob"]);
  await rows.silence({ nonsense: "\u001b[2J" }, 600);
  const lines = (await run(["list"])).out.split("\n");
  expect(lines[0]).toMatch(/^SILENCE +STATE +ENDS IN +FROM \(UTC\) +TO \(UTC\) +ALERTS +BY +REASON$/);
  expect(lines[3]).toMatch(
    /^#\d+ +active +\d+ min +2026-11-20 15:30 +2026-11-20 16:00:20 +zone 101 or 102 +bob +short$/,
  );
  expect(lines[1]).toContain("(mutes nothing: its matchers cannot be read)");
  expect(lines[2]).toContain("kind new-rule");
  const later = NOW + 32 * MINUTE_MS;
  expect((await run(["list"], later)).out).not.toContain("short");
  expect((await run(["list", "--all"], later)).out).toMatch(/expired .* bob +short/);
  const { items, next } = JSON.parse((await run(["list", "--all", "--json"], later)).out) as {
    items: { state: string; expiresAt: string }[];
    next: null;
  };
  expect(items.map(({ state }) => state)).toEqual(["active", "active", "expired"]);
  expect(items[2]?.expiresAt).toBe("2026-11-20T16:00:20.000Z");
  expect(next).toBeNull();
  const only = await run(["list", "--state", "expired", "--json"], later);
  expect(JSON.parse(only.out)).toMatchObject({ items: [{ state: "expired" }] });
});

test("of two concurrent expiries of a silence one succeeds, and the muted alert then notifies", async () => {
  await run(["add", "--zone", "101", ...WHY]);
  await rows.fire();
  expect(await rows.outbox()).toEqual([]);
  const [silence] = await database.db.select().from(silences);
  const id = String(silence?.id);
  const ran = await Promise.all([
    run(["expire", id, "--by", "bob"], NOW + MINUTE_MS),
    run(["expire", `#${id}`, "--by", "carol"], NOW + MINUTE_MS),
  ]);
  expect(ran.map(({ code }) => code)).toEqual([0, 0]);
  expect(ran.map(({ out }) => out).sort()).toEqual([
    `silence #${id} is expired.\n`,
    `silence #${id} was already expired; nothing was changed.\n`,
  ]);
  await rows.runAt(2);
  expect(await rows.outbox()).toEqual(["2 first chat", "2 first pager"]);
  expect((await rows.audit()).map(({ action }) => action)).toEqual(["silence.added", "silence.expired"]);
  expect(await run(["expire", "4711"])).toMatchObject({ code: 1 });
});

test("without subject, end or reason no silence is added, and every mistake is reported at once", async () => {
  const empty = await run(["add"]);
  expect(empty.code).toBe(2);
  expect(empty.err).toContain("longwatch silences add: 3 mistakes");
  const wrong = await run([
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
  ]);
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
    expect((await run(["add", "--zone", "101", `--for=${duration}`, "--reason", "x"])).code).toBe(2);
  expect(await database.db.select().from(silences)).toEqual([]);
});

test.each(["add", "list", "expire"])("%s explains itself with examples", async (name) => {
  const { code, out } = await run([name, "--help"]);
  expect(code).toBe(0);
  expect(out).toContain(`Examples:\n  npm run -s longwatch -- silences ${name}`);
});
