import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { silences } from "#db/schema/alerts.ts";
import { configCommand } from "#faces/cli/config/config.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 23, 23, 30);
const DOCS = path.join(import.meta.dirname, "..", "..", "..", "docs");

const FILE = `
zones: { 101: { name: shop } }
channels:
  chat: { kind: discord, url_env: CHAT }
  pager: { kind: pagerduty, routing_key_env: PAGER }
  screen: { kind: terminal }
route:
  channels: [screen]
  group_wait: 0s
  routes:
    - { matchers: { severity: [critical] }, channels: [pager], continue: true }
    - { matchers: { zone: [shop] }, channels: [chat, screen], routes: [{ matchers: { rule: ["942*"] } }] }
    - { matchers: { kind: [new-rule] }, channels: [] }
inhibit: [{ source: { rule: ["949*"] }, target: { severity: [warning] }, equal: [zone] }]
quiet_hours: [{ time_zone: UTC, from: "22:00", to: "07:00", channels: [pager], critical: hold }]
`;

let database: MigratedDatabase;
let folder: string;
beforeAll(async () => {
  database = await createMigratedDatabase();
  folder = makeTemporaryFolder("routes");
  writeFileSync(path.join(folder, "l.yaml"), FILE);
});
afterAll(() => database.drop());

const run = (args: string, file = path.join(folder, "l.yaml")) =>
  runStoreCommand(
    (config, io) => configCommand({ check: config, config, list: () => [], running: () => null }, io),
    {
      LONGWATCH_CONFIG: file,
      CHAT: "https://chat.example.com/x",
      PAGER: "k".repeat(32),
      PAGER_URL: "https://pager.example.com/in",
      DATABASE_URL: database.url,
    },
    ["routes", "test", ...args.split(" ")],
    { now: NOW },
  );

const explain = async (args: string) => JSON.parse((await run(`${args} --json`)).out);

test("every route is shown with its verdict and what does not match", async () => {
  const { routes } = await explain("--zone shop --rule 942100 --severity error");
  expect(
    routes.map(({ path: at, verdict, mismatches }: Record<string, unknown>) => [at, verdict, mismatches]),
  ).toEqual([
    ["route", "passed on", []],
    ["route.routes[0]", "no match", ["severity"]],
    ["route.routes[1]", "passed on", []],
    ["route.routes[1].routes[0]", "taken", []],
    ["route.routes[2]", "skipped", []],
  ]);
  const root = await explain("--zone 7 --rule 1 --severity info");
  expect(root.routes[0]).toMatchObject({ verdict: "taken", channels: ["screen"] });
});

test("shows the channels that are notified, updated, delayed and waiting for the beginning, a rise and the end", async () => {
  const error = await explain("--zone 101 --rule 942100 --severity error --at 2026-11-23T12:00");
  expect(error.transitions).toMatchObject([
    { reason: "first", notified: ["chat", "screen"], updated: [], waiting: [], held: [] },
    // Discord can change its message; a terminal would notify again; PagerDuty is notified for the first time.
    { reason: "worse", severity: "critical", notified: ["pager"], updated: ["chat"], waiting: ["screen"] },
    { reason: "resolved", notified: expect.arrayContaining(["chat", "pager", "screen"]) },
  ]);
  const night = await explain("--zone 101 --rule 942100 --severity critical");
  expect(night.transitions[0]).toMatchObject({ notified: ["chat", "screen"], held: ["pager"] });
  expect(night.quietHours).toEqual([{ path: "quiet_hours[0]", verdict: "holds", channels: ["pager"] }]);
});

test("with --live a silence and a firing source mute the alert, without it neither is looked at", async () => {
  const row = { startsAt: new Date(NOW - 1), expiresAt: new Date(NOW + 1_000), createdBy: "a", reason: "b" };
  await database.db.insert(silences).values({ ...row, matchers: { zone: [101] } });
  await insertSpike(database.db, { openedAt: new Date(NOW - 60_000), zoneId: 102, ruleId: "949110" });
  const silenced = await explain("--zone 101 --rule 942100 --severity error --live");
  expect(silenced.silencedBy).toBeGreaterThan(0);
  expect(silenced.transitions[0]).toMatchObject({ reason: "first", notified: [], held: [] });
  const inhibited = await explain("--zone 102 --rule 942100 --severity warning --live");
  expect(inhibited.inhibitedBy).toBe("inhibit[0]");
  expect(inhibited.transitions[0]).toMatchObject({ notified: [] });
  expect((await run("--zone 102 --rule 942100 --severity warning --live")).code).toBe(1);
  const alone = await run("--zone 102 --rule 942100 --severity warning");
  expect(alone.code).toBe(0);
  expect(alone.out).toContain("silences and inhibitions are not checked; --live reads them");
});

test("the example of docs/routing.md is what the command prints for the example file", async () => {
  const example = path.join(makeTemporaryFolder("example"), "longwatch.yaml");
  const text = readFileSync(path.join(DOCS, "longwatch.example.yaml"), "utf8")
    .replace("url_file: ./secrets/slack-url", "url_env: CHAT")
    .replace("api_key_env: ELASTIC_API_KEY", "api_key_env: CHAT")
    .replace("./secrets/pager-signing-key", `${example}.key`);
  writeFileSync(example, text);
  writeFileSync(`${example}.key`, `whsec_${Buffer.alloc(32, 7).toString("base64")}`);
  const { out } = await run("--zone 102 --rule 920100 --severity error --at 2026-11-23T23:30", example);
  const page = readFileSync(path.join(DOCS, "routing.md"), "utf8");
  const shown = page.split(
    "config routes test --zone 102 --rule 920100 --severity error --at 2026-11-23T23:30\n",
  )[1];
  expect(shown?.split("```")[0]).toBe(out);
});

test("every mistake of what was typed is listed at once", async () => {
  const typed = await run("--zone nowhere --severity bad --kind x --at never");
  const named = await run("--zone nowhere --severity error");
  expect([typed.code, named.code]).toEqual([2, 2]);
  for (const said of ['--severity "bad"', '--kind "x"', '--at "never"']) expect(typed.err).toContain(said);
  for (const said of ['--zone "nowhere" must be', "--rule is missing"]) expect(named.err).toContain(said);
});

test("an alert of Longwatch's own needs no zone and no rule, and no quiet hours hold it", async () => {
  const { code, out } = await run("--kind self --severity error");
  expect(code).toBe(0);
  expect(out).toContain("when it begins: notified: screen");
  expect(out).toContain("quiet_hours[0]: quiet hours never mute Longwatch's own alerts");
});
