import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { readRuntimeFile, writeRuntimeFile } from "#app/runtime-file.ts";
import {
  describeConfig,
  listSettings,
  parseConfig,
  parseServiceConfig,
  requireEdge,
} from "#config/config.ts";
import { sensitivityOf } from "#detection/rules/detection-settings.ts";
import { configCommand } from "#faces/cli/config/config.ts";
import { adoptServiceFile, parseConfigOfService } from "#faces/cli/config/config-of-service.ts";
import { configTable, withConfigTable } from "#faces/cli/config/config-table.ts";
import { UsageError } from "#lib/errors.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

function writeTemporary(text: string): string {
  const file = path.join(makeTemporaryFolder("config"), "file");
  writeFileSync(file, text);
  return file;
}

function mistakesOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof UsageError) return thrown.mistakes;
    throw thrown;
  }
  return [];
}

test("every mistake is listed at once with variable, value and rule", () => {
  const mistakes = mistakesOf(() =>
    parseConfig({
      EDGE_API_URL: "nope",
      EDGE_SHIELD_ZONES: "1,x",
      EDGE_API_KEY: "k",
      EDGE_API_KEY_FILE: "/f",
    }),
  );

  expect(mistakes).toHaveLength(3);
  expect(mistakes).toContain('EDGE_API_URL: "nope": must be an http or https URL without user name');
  expect(mistakes).toContain('EDGE_SHIELD_ZONES: "1,x": must be whole numbers above 0, separated by commas');
  expect(mistakes).toContain(
    'EDGE_API_KEY_FILE: "/f": must not be set together with EDGE_API_KEY: remove one of the two',
  );
});

test("an empty environment is valid, and empty variables count as unset", () => {
  expect(parseConfig({ EDGE_API_URL: "" }).edge).toEqual({
    url: null,
    key: null,
    zones: [],
    requestsPerSecond: 10,
  });
});

test("zones are read as numbers without doubles", () => {
  expect(parseConfig({ EDGE_SHIELD_ZONES: "102, 101,102" }).edge.zones).toEqual([102, 101]);
});

test("without any variable the service runs on its own", () => {
  expect(parseServiceConfig({ PATH: "/bin" })).toMatchObject({
    databaseUrl: null,
    redisUrl: null,
    roles: ["ingest", "derive", "alerts", "http"],
    http: { host: "127.0.0.1", port: 8_080 },
    pollEveryMs: 10_000,
    spikeZ: 3.5,
    retention: { rawDays: 90, ipDays: 90, eventDays: 400, rollUpDays: 800 },
    pseudonymKey: null,
    channels: { webhook: null, slack: null, allowPrivate: false },
  });
});

test("settings are read with their types", () => {
  const config = parseServiceConfig({
    LONGWATCH_ROLES: "http, ingest,http",
    LONGWATCH_PORT: "0",
    LONGWATCH_SPIKE_Z: "4.25",
    LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true",
    LONGWATCH_WEBHOOK_URL: "https://hooks.example.test/a",
    LONGWATCH_WEBHOOK_SECRET: SIGNING_SECRET,
    REDIS_URL: "rediss://cache.example.test",
  });

  expect(config).toMatchObject({
    roles: ["http", "ingest"],
    http: { port: 0 },
    spikeZ: 4.25,
    channels: { slack: null, allowPrivate: true },
  });
  expect(config.channels.webhook?.secret.reveal()).toBe(SIGNING_SECRET);
  expect(config.redisUrl?.reveal()).toBe("rediss://cache.example.test");
});

test.each([
  ["EDGE_API_URL", "ftp://example.test"],
  ["EDGE_API_URL", "https://user@example.test"],
  ["EDGE_SHIELD_ZONES", "0"],
  ["EDGE_SHIELD_ZONES", "9007199254740993"],
  ["DATABASE_URL", "mysql://localhost/x"],
  ["REDIS_URL", "localhost:6379"],
  ["LONGWATCH_ROLES", "ingest,cook"],
  ["LONGWATCH_ROLES", ","],
  ["LONGWATCH_HOST", "localhost/path"],
  ["LONGWATCH_PORT", "65536"],
  ["LONGWATCH_PORT", "0x50"],
  ["LONGWATCH_LOG_LEVEL", "loud"],
  ["LONGWATCH_SPIKE_Z", "0.5"],
  ["LONGWATCH_SPIKE_Z", "NaN"],
  ["EDGE_REQUESTS_PER_SECOND", "0"],
  ["EDGE_REQUESTS_PER_SECOND", "1001"],
  ["LONGWATCH_ADVICE_PER_HOUR", "-1"],
  ["LONGWATCH_RETENTION_DAYS", "3"],
  ["LONGWATCH_WEBHOOK_URL", "file:///etc/passwd"],
  ["LONGWATCH_WEBHOOK_SECRET", `whsec_${Buffer.alloc(23).toString("base64")}`],
  ["LONGWATCH_SLACK_WEBHOOK_URL", "hooks.example.test"],
  ["LONGWATCH_HEARTBEAT_URL", "watch.example.test"],
  ["LONGWATCH_ALLOW_PRIVATE_WEBHOOKS", "yes"],
])("%s=%s is a mistake that names the variable and its rule", (name, value) => {
  const mistakes = mistakesOf(() => parseConfig({ [name]: value }));

  expect(mistakes).toHaveLength(1);
  expect(mistakes[0]).toMatch(new RegExp(`^${name}: .+: must be .+`));
});

test("a mistake never shows the value of a secret, nor a password inside an address", () => {
  const mistakes = mistakesOf(() =>
    parseConfig({
      DATABASE_URL: "mysql://u:canary@h/x",
      REDIS_URL: "canary",
      LONGWATCH_WEBHOOK_URL: "canary",
      LONGWATCH_WEBHOOK_SECRET: "canary",
      LONGWATCH_SLACK_WEBHOOK_URL: "canary",
      LONGWATCH_HEARTBEAT_URL: "canary",
      EDGE_API_URL: "https://user:canary@example.test",
      EDGE_API_KEYS: "canary",
    }),
  );

  expect(mistakes).toHaveLength(8);
  expect(mistakes.join("\n")).not.toContain("canary");
});

test("a variable of an earlier version is a mistake that names what replaces it", () => {
  expect(mistakesOf(() => parseConfig({ LONGWATCH_POLL_SECONDS: "45" }))).toEqual([
    expect.stringMatching(/^LONGWATCH_POLL_SECONDS: is no longer a setting: .* schedule\.poll-events, /),
  ]);
});

test.each([
  ["EDGE_API_KEYS", "EDGE_API_KEY"],
  ["EDGE_API_KEY_FIEL", "EDGE_API_KEY_FILE"],
  ["LONGWATCH_SPIKEZ", "LONGWATCH_SPIKE_Z"],
  ["LONGWATCH_LAST_PROOF", "LONGWATCH_LAST_PROOF_HOURS"],
  ["LONGWATCH_RETENTION_DAYS_FILE", "LONGWATCH_RETENTION_DAYS"],
])("the misspelt variable %s is a mistake that suggests %s", (typed, meant) => {
  expect(mistakesOf(() => parseConfig({ [typed]: "1" }))).toEqual([
    `${typed}: is not a setting: did you mean ${meant}?`,
  ]);
});

test("a variable like no other is refused without a suggestion, and other programs' variables are left alone", () => {
  expect(mistakesOf(() => parseConfig({ LONGWATCH_XYZZY: "1", EDITOR: "vi", REDIS_HOST: "x" }))).toEqual([
    "LONGWATCH_XYZZY: is not a setting",
  ]);
});

test.each([
  { given: { EDGE_API_URL: "https://api.example.test" }, missing: ["EDGE_API_KEY", "EDGE_SHIELD_ZONES"] },
  { given: { EDGE_API_KEY: "k" }, missing: ["EDGE_API_URL"] },
  { given: { LONGWATCH_WEBHOOK_URL: "https://hooks.example.test" }, missing: ["LONGWATCH_WEBHOOK_SECRET"] },
  { given: { LONGWATCH_WEBHOOK_SECRET: SIGNING_SECRET }, missing: ["LONGWATCH_WEBHOOK_URL"] },
])("the service refuses to start with $given alone", ({ given, missing }) => {
  const mistakes = mistakesOf(() => parseServiceConfig(given));

  expect(mistakes.map((mistake) => mistake.split(":")[0])).toEqual(missing);
});

test("missing and wrong settings are reported together", () => {
  const mistakes = mistakesOf(() => parseServiceConfig({ EDGE_API_KEY: "k", LONGWATCH_PORT: "http" }));

  expect(mistakes).toEqual([
    'LONGWATCH_PORT: "http": must be a whole number from 0 to 65535',
    "EDGE_API_URL: not set: must be set when EDGE_API_KEY is",
  ]);
});

test("a command that needs the platform names both missing variables", () => {
  expect(mistakesOf(() => requireEdge(parseConfig({})))).toHaveLength(2);
});

test("a secret comes from its file without the last line end and cannot be printed", () => {
  const file = writeTemporary("canary-key\n");
  const config = parseConfig({ EDGE_API_URL: "https://api.example.test", EDGE_API_KEY_FILE: file });

  expect(requireEdge(config).accessKey.reveal()).toBe("canary-key");
  expect(`${inspect(config, { depth: 9 })}${JSON.stringify(config)}${String(config.edge.key)}`).not.toContain(
    "canary",
  );
});

test("a secret file that cannot be read is a mistake that names the file", () => {
  const mistakes = mistakesOf(() => parseConfig({ EDGE_API_KEY_FILE: "/nowhere/key" }));

  expect(mistakes[0]).toMatch(/^EDGE_API_KEY_FILE: "\/nowhere\/key": must be a readable file/);
});

test("an empty secret file is a mistake", () => {
  const file = writeTemporary("\n");

  expect(mistakesOf(() => parseConfig({ DATABASE_URL_FILE: file }))).toEqual([
    `DATABASE_URL_FILE: ${JSON.stringify(file)}: must not be empty`,
  ]);
});

test("the table of the documentation is the one that the schema gives", () => {
  const page = readFileSync(path.join(import.meta.dirname, "..", "..", "docs", "configuration.md"), "utf8");

  expect(withConfigTable(page), "npm run -s longwatch -- config table --write docs/configuration.md").toBe(
    page,
  );
});

test("the table goes between its markers, and nowhere when they are missing", async () => {
  const file = writeTemporary("before\n<!-- config -->\nold\n<!-- /config -->\nafter\n");
  await configCommand({
    check: () => parseConfig({}),
    config: () => parseConfig({}),
    list: () => [],
    running: () => null,
  }).parseAsync(["table", "--write", file], {
    from: "user",
  });

  expect(readFileSync(file, "utf8")).toBe(
    `before\n<!-- config -->\n\n${configTable()}\n<!-- /config -->\nafter\n`,
  );
  expect(() => withConfigTable("no markers")).toThrow("the file must have the markers");
});

test("every setting is listed with what holds here, secrets hidden, what is set marked", () => {
  const key = writeTemporary("a-key-of-the-platform\n");
  const listed = listSettings({
    EDGE_API_KEY_FILE: key,
    DATABASE_URL: "postgres://canary@db/longwatch",
    LONGWATCH_PORT: "9090",
    LONGWATCH_HOST: "",
  });
  expect(listed.map(({ name }) => name)).toEqual(describeConfig().map(({ variables }) => variables[0]));
  const find = (name: string) => listed.find((setting) => setting.name === name);
  expect(find("EDGE_API_KEY")).toEqual({ name: "EDGE_API_KEY", value: "[secret]", isSet: true });
  expect(find("DATABASE_URL")).toEqual({ name: "DATABASE_URL", value: "[secret]", isSet: true });
  expect(find("LONGWATCH_PORT")).toEqual({ name: "LONGWATCH_PORT", value: "9090", isSet: true });
  expect(find("LONGWATCH_HOST")).toEqual({ name: "LONGWATCH_HOST", value: "127.0.0.1", isSet: false });
  expect(find("REDIS_URL")).toEqual({ name: "REDIS_URL", value: null, isSet: false });
  expect(JSON.stringify(listed)).not.toContain("canary");
  expect(mistakesOf(() => listSettings({ LONGWATCH_PORT: "x" }))).toHaveLength(1);
});

test.each([
  ["email", "ada@example.org", true],
  ["profile.e-mail", "desk", true],
  ["upn", "desk", true],
  ["hd", "example.org", true],
  ["email_domain", "example.org", true],
  ["preferred_username", "ada", true],
  ["https://example.org/claims/unique_name", "ada", true],
  ["groups", "ada@example.org", true],
  ["groups", "desk", false],
  ["realm_access.roles", "desk", false],
])(
  "config check says of the claim %s and the value %s whether e-mail decides: %s",
  async (claim, value, decides) => {
    const file = path.join(makeTemporaryFolder("config-email"), "longwatch.yaml");
    const entry = {
      issuer: "https://login.example.com",
      client_id: "x",
      claim,
      roles: { [value]: { role: "reader" } },
    };
    writeFileSync(file, JSON.stringify({ sign_in: entry }));
    const config = () =>
      parseServiceConfig({ LONGWATCH_CONFIG: file, LONGWATCH_PUBLIC_URL: "https://l.example" });
    const readers = { check: config, config, list: () => [], running: () => null };
    const check = async (...args: string[]) =>
      (await runStoreCommand((_, io) => configCommand(readers, io), {}, ["check", ...args], { now: 0 })).out;
    expect((await check()).includes("E-mail addresses decide about roles")).toBe(decides);
    expect(JSON.parse(await check("--json"))).toMatchObject({ decidesByEmail: decides });
  },
);

test("config check says that the known sources of the file and the stored ones count together", async () => {
  const file = path.join(makeTemporaryFolder("config-known"), "longwatch.yaml");
  const check = async (...known: object[]) => {
    writeFileSync(file, JSON.stringify({ detection: { known_sources: known } }));
    const config = () => parseServiceConfig({ LONGWATCH_CONFIG: file });
    const readers = { check: config, config, list: () => [], running: () => null };
    const ran = await runStoreCommand((_, io) => configCommand(readers, io), {}, ["check"], { now: 0 });
    return `${ran.out}${ran.err}`;
  };
  const many = Array.from({ length: 501 }, (_, i) => `agent ${i}`);
  expect(await check()).not.toContain("known_sources");
  expect(await check({ ua: many.slice(1), reason: "x" })).toContain(
    "detection.known_sources has 500 patterns. The sources of known add count with them: at most 500 in one zone and 2,000 in all.",
  );
  // Those that have ended and those that are there twice recognise nothing more.
  const ended = { ua: many, reason: "x", until: "2026-01-01T00:00:00Z" };
  expect(await check(ended)).toContain("The configuration is valid.");
  expect(await check({ ua: [...many.slice(1), ...many.slice(1)], reason: "x" })).toContain("is valid.");
  expect(await check({ ua: many, zone: [7], reason: "x" })).toContain("500 known sources in zone 7");
});

test("the weekly digest goes to channels of the file that show messages, and to no other", () => {
  const file = path.join(makeTemporaryFolder("config-digest"), "longwatch.yaml");
  const read = (channels: string) => {
    writeFileSync(
      file,
      `channels: { chat: { kind: terminal }, pager: { kind: pagerduty, routing_key_env: KEY } }\ndigest: { channels: ${channels} }\n`,
    );
    return parseServiceConfig({ LONGWATCH_CONFIG: file, KEY: "0123456789abcdef0123456789abcdef" });
  };
  expect(read("[chat]").alerting.digestChannels).toEqual(["chat"]);
  expect(mistakesOf(() => read("[chta]"))).toEqual([
    expect.stringContaining("is not a channel: must be one of chat, pager"),
  ]);
  expect(mistakesOf(() => read("[chat, pager]"))).toEqual([
    expect.stringContaining('"pager": must be a channel that shows messages; pagerduty has alerts only'),
  ]);
});

test("config check names the channels that end with Opsgenie, and no other channel", async () => {
  const file = path.join(makeTemporaryFolder("config-ending"), "longwatch.yaml");
  const key = "api_key_env: GENIE_KEY";
  const lines = [
    `us: { kind: opsgenie, ${key} }`,
    `eu: { kind: opsgenie, ${key}, url: "https://api.eu.opsgenie.com" }`,
    `other: { kind: opsgenie, ${key}, url: "https://api.notopsgenie.com" }`,
    `jira: { kind: jira-service-management, ${key} }`,
  ];
  writeFileSync(file, `channels:\n${lines.map((line) => `  ${line}\n`).join("")}`);
  const config = () => parseServiceConfig({ LONGWATCH_CONFIG: file, GENIE_KEY: "key" });
  const readers = { check: config, config, list: () => [], running: () => null };
  const check = async (...args: string[]) =>
    (await runStoreCommand((_, io) => configCommand(readers, io), {}, ["check", ...args], { now: 0 })).out;
  expect(await check()).toContain("Opsgenie ends on 2027-04-05.");
  expect(await check()).toMatch(/: us, eu\.$/m);
  expect(JSON.parse(await check("--json"))).toMatchObject({ isRight: true, ending: ["us", "eu"] });
});

test("config check names the file that it read, and the other file that the running service uses", async () => {
  const folder = makeTemporaryFolder("config-check");
  const own = path.join(folder, "own.yaml");
  const its = path.join(folder, "its.yaml");
  writeFileSync(own, "detection: { z: 4 }\n");
  const check = async (env: Record<string, string>, args: string[] = []) => {
    const config = () => parseServiceConfig({ LONGWATCH_DATA_DIR: folder, ...env });
    const readers = { check: config, config, list: () => [], running: () => readRuntimeFile(folder) };
    const ran = await runStoreCommand((_, io) => configCommand(readers, io), {}, ["check", ...args], {
      now: 0,
    });
    return ran.out.replace("The configuration is valid.\n", "");
  };
  expect(await check({})).toBe(
    `No configuration file was read. LONGWATCH_CONFIG names the file, here and for the service. No service runs on ${folder}.\n`,
  );
  expect(await check({ LONGWATCH_CONFIG: own })).toBe(`Configuration file: ${own}.\n`);
  writeRuntimeFile(folder, { pid: process.ppid, databaseUrl: "", httpUrl: null, configFile: its });
  expect(await check({})).toBe(
    `No configuration file was read. The running service uses ${its}. To check that file: LONGWATCH_CONFIG=${its} npm run -s longwatch -- config check\n`,
  );
  expect(JSON.parse(await check({ LONGWATCH_CONFIG: own }, ["--json"]))).toEqual({
    isRight: true,
    configFile: own,
    serviceFile: its,
    schedule: [],
    decidesByEmail: false,
    ending: [],
  });
  writeFileSync(own, 'schedule: { archive-days: "0 15 2,14 * * *", poll-events: "*/20 * * * * *" }');
  expect(await check({ LONGWATCH_CONFIG: own })).toMatch(
    /\npoll-events +\*\/20 .* every 20 s .*\narchive-days +0 15 2,14 \* \* \* +every 12 h +(\d{4}-\d\d-\d\d (02|14):15(, )?){3}\n$/,
  );
  expect(JSON.parse(await check({ LONGWATCH_CONFIG: own }, ["--json"]))).toMatchObject({
    schedule: [
      { job: "poll-events" },
      { job: "archive-days", expression: "0 15 2,14 * * *", every: "every 12 h", next: { length: 3 } },
    ],
  });
  const adopted = adoptServiceFile({ LONGWATCH_DATA_DIR: folder });
  expect(adopted).toMatchObject({ env: { LONGWATCH_CONFIG: its }, found: { file: its, from: "service" } });
  expect(adoptServiceFile({ LONGWATCH_DATA_DIR: folder, LONGWATCH_CONFIG: own }).found?.from).toBe(
    "environment",
  );
});

test("a command has the settings and the configuration file of the running service, without its secrets", () => {
  const folder = makeTemporaryFolder("config-of-service");
  const file = path.join(folder, "its.yaml");
  const write = (z: string) =>
    writeFileSync(
      file,
      `zones: { 101: { name: shop } }
detection: { overrides: [{ rule: ["942100"], z: ${z} }] }
channels:
  chat: { kind: slack, url_env: ONLY_THE_SERVICE_HAS_IT }
  hook: { kind: webhook, url_env: ONLY_THE_SERVICE_HAS_IT, secrets_file: [only-there.key] }
route: { channels: [chat, hook] }
forward:
  siem: { kind: splunk, url: "https://splunk.example.com", token_env: ONLY_THE_SERVICE_HAS_IT }
sign_in:
  issuer: https://issuer.example.com
  client_id: longwatch
  client_secret_env: ONLY_THE_SERVICE_HAS_IT
  claim: groups
  roles: { on-call: { role: operator } }
`,
    );
  write("9");
  const settings = { EDGE_SHIELD_ZONES: "101,102", LONGWATCH_SPIKE_Z: "5", LONGWATCH_PORT: "8090" };
  writeRuntimeFile(folder, {
    pid: process.ppid,
    databaseUrl: "",
    httpUrl: null,
    configFile: file,
    consoleUrl: "http://10.0.0.5:8090",
    settings: { ...settings, DATABASE_URL: "[secret]", EDGE_API_URL: "https://edge.example.com" },
  });
  const env = { LONGWATCH_DATA_DIR: folder };
  const found = parseConfigOfService(env);
  expect(found).toMatchObject({
    edge: { zones: [101, 102], url: null },
    spikeZ: 5,
    databaseUrl: null,
    http: { port: 8080 },
    consoleUrl: "http://10.0.0.5:8090",
    alerting: {
      channels: [{ name: "chat" }, { name: "hook" }],
      destinations: [{ name: "siem", kind: "splunk" }],
      routing: { zones: { 101: { name: "shop" } } },
      signIn: { clientId: "longwatch" },
    },
  });
  expect(sensitivityOf(found.alerting.detection, 101, "942100").z).toBe(9);
  expect(() => parseConfig({ ...env, LONGWATCH_CONFIG: file })).toThrow(/environment variable that is set/);
  expect(parseConfigOfService({ ...env, LONGWATCH_SPIKE_Z: "4" }).spikeZ).toBe(4);
  // A mistake in the file since the service has read it keeps nobody from a command.
  write("nine");
  expect(parseConfigOfService(env)).toMatchObject({ spikeZ: 3.5, alerting: { destinations: [] } });
  rmSync(path.join(folder, "runtime.json"));
  expect(parseConfigOfService(env)).toMatchObject({ edge: { zones: [] }, spikeZ: 3.5 });
});

test("config list names the settings that the running service has instead, and where it listens", async () => {
  const env = { LONGWATCH_PORT: "9090", LONGWATCH_DATA_DIR: "/data", DATABASE_URL: "postgres://canary@db/x" };
  const there = { ...env, LONGWATCH_PORT: "8090", LONGWATCH_SPIKE_Z: "4" };
  const settings = Object.fromEntries(parseConfig(there).settings.map(({ name, value }) => [name, value]));
  const service = { pid: 4711, httpUrl: "http://127.0.0.1:8090", settings };
  const list = (args: string[], running: object | null) =>
    runStoreCommand(
      (_read, io) =>
        configCommand(
          {
            check: () => parseConfig(env),
            config: () => parseConfig(env),
            list: () => listSettings(env),
            running: () => running as never,
          },
          io,
        ),
      {},
      ["list", ...args],
      { now: 0 },
    );
  const { out } = await list([], service);
  expect(out).toMatch(/^\* LONGWATCH_PORT +9090$/m);
  expect(out.split("\n\n")[1]).toBe(
    [
      "The running service (process 4711) listens at http://127.0.0.1:8090. It has these other settings:",
      "  LONGWATCH_PORT     8090",
      "  LONGWATCH_SPIKE_Z  4",
      "",
    ].join("\n"),
  );
  const { running } = JSON.parse((await list(["--json"], service)).out);
  expect(running).toEqual({
    pid: 4711,
    httpUrl: "http://127.0.0.1:8090",
    different: [
      { name: "LONGWATCH_PORT", value: "8090" },
      { name: "LONGWATCH_SPIKE_Z", value: "4" },
    ],
  });
  expect((await list([], null)).out).not.toContain("service that runs");
  expect(JSON.parse((await list(["--json"], null)).out).running).toBeNull();
  expect(JSON.stringify(settings)).not.toContain("canary");
});

test("a fallback channel gets copies after ten minutes by default; without a setting there is none", () => {
  const read = (env: Record<string, string>) => parseConfig(env).fallback;
  expect(read({})).toBeNull();
  const slack = { LONGWATCH_SLACK_WEBHOOK_URL: "https://hooks.example.com/T0" };
  expect(read({ ...slack, LONGWATCH_FALLBACK_CHANNEL: "slack" })).toEqual({
    channel: "slack",
    afterMs: 600_000,
  });
  expect(read({ LONGWATCH_FALLBACK_CHANNEL: "terminal", LONGWATCH_FALLBACK_MINUTES: "3" })).toEqual({
    channel: "terminal",
    afterMs: 180_000,
  });
  const wrong = { LONGWATCH_FALLBACK_CHANNEL: "a b", LONGWATCH_FALLBACK_MINUTES: "0" };
  expect(mistakesOf(() => parseConfig(wrong))).toEqual([
    'LONGWATCH_FALLBACK_CHANNEL: "a b": must be the name of a channel',
    'LONGWATCH_FALLBACK_MINUTES: "0": must be a whole number of minutes from 1 to 1440',
  ]);
});

test("a fallback channel that does not exist is a mistake that names those that do", () => {
  const file = writeTemporary("channels: { night: { kind: terminal }, day: { kind: terminal } }\n");
  const wrong = { LONGWATCH_CONFIG: file, LONGWATCH_FALLBACK_CHANNEL: "nights" };
  expect(mistakesOf(() => parseConfig(wrong))).toEqual([
    'LONGWATCH_FALLBACK_CHANNEL: "nights": is not a channel: must be one of night, day: did you mean night?',
  ]);
  expect(mistakesOf(() => parseConfig({ LONGWATCH_FALLBACK_CHANNEL: "pager" }))).toEqual([
    'LONGWATCH_FALLBACK_CHANNEL: "pager": is not a channel: must be one of terminal',
  ]);
  // Also for a file that is read again while the service runs.
  const { rereadAlerting } = parseConfig({ ...wrong, LONGWATCH_FALLBACK_CHANNEL: "day" });
  writeFileSync(file, "channels: { night: { kind: terminal } }\n");
  expect(mistakesOf(rereadAlerting)).toEqual([
    'LONGWATCH_FALLBACK_CHANNEL: "day": is not a channel: must be one of night',
  ]);
  // Together with the mistakes of the file itself.
  writeFileSync(file, "channels: { night: { kind: terminal, colour: red } }\n");
  expect(mistakesOf(rereadAlerting)).toEqual([
    `${file}: channels.night.colour: is not a setting: known here: kind`,
    'LONGWATCH_FALLBACK_CHANNEL: "day": is not a channel: must be one of night',
  ]);
});

test("a bucket is read from its URL and the usual variables, and days are then archived beside any database", () => {
  const keys = { AWS_ACCESS_KEY_ID: "canary-id", AWS_SECRET_ACCESS_KEY: "canary-secret" };
  const given = { ...keys, LONGWATCH_ARCHIVE_URL: "s3://my.logs/a/b=1/", DATABASE_URL: "postgres://db/x" };
  const { archive } = parseServiceConfig(given);
  expect(archive).toMatchObject({
    isWritten: true,
    bucket: {
      name: "my.logs",
      prefix: "a/b=1",
      endpoint: "https://s3.us-east-1.amazonaws.com",
      cacheBytes: 10e9,
      sessionToken: null,
    },
  });
  expect(archive.bucket?.secretAccessKey.reveal()).toBe("canary-secret");
  expect(JSON.stringify(archive)).not.toContain("canary");
  const elsewhere = { ...given, AWS_ENDPOINT_URL: "http://minio:9000", AWS_REGION: "eu-1" };
  expect(parseServiceConfig(elsewhere).archive.bucket).toMatchObject({
    endpoint: "http://minio:9000",
    region: "eu-1",
  });
  expect(parseConfig({ DATABASE_URL: "postgres://db/x" }).archive).toMatchObject({
    bucket: null,
    isWritten: false,
  });
});

test.each([
  ["https://my.logs", "must be s3://, the name of a bucket"],
  ["s3://", "must be s3://, the name of a bucket"],
  ["s3://UPPER", "must be s3://, the name of a bucket"],
  ["s3://logs/a b", "must be s3://, the name of a bucket"],
  ["s3://logs", "AWS_SECRET_ACCESS_KEY: not set: must be set when LONGWATCH_ARCHIVE_URL is"],
])("config check refuses the bucket %s without credentials", (url, said) => {
  expect(mistakesOf(() => parseServiceConfig({ LONGWATCH_ARCHIVE_URL: url })).join()).toContain(said);
});

test("config check names an archive folder that is a file, that lies in a file, or that cannot be written", () => {
  const file = writeTemporary("x");
  const readOnly = makeTemporaryFolder("read-only");
  const check = (folder: string) =>
    mistakesOf(() => parseServiceConfig({ LONGWATCH_ARCHIVE_DIR: folder })).join();

  expect(check(file)).toBe(`LONGWATCH_ARCHIVE_DIR: "${file}": must be a folder, but ${file} is a file`);
  expect(check(path.join(file, "archive"))).toContain(`${file} is a file`);
  expect(check(path.join(readOnly, "not", "there"))).toBe("");
  chmodSync(readOnly, 0o500);
  // Root may write everywhere.
  const isRoot = process.getuid?.() === 0;
  expect(check(readOnly)).toContain(isRoot ? "" : "that Longwatch may write");
});
