import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { PLACEHOLDERS } from "#alerts/rules/message/links.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { parseConfig, parseServiceConfig } from "#config/config.ts";
import { toJsonSchema } from "#config/file/config-file-schema.ts";
import { lowestFloor, sensitivityOf } from "#detection/rules/detection-settings.ts";
import { UsageError } from "#lib/errors.ts";
import { pollExpression, TICK_NAMES, toSchedule } from "#model/schedule.ts";
import { makePipe } from "../support/make-pipe.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const DOCS = path.join(import.meta.dirname, "..", "..", "docs");
const POLLED = { zones: 10, requestsPerSecond: 10 };
const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

function writeConfig(text: string): string {
  const file = path.join(makeTemporaryFolder("file"), "longwatch.yaml");
  writeFileSync(file, text);
  return file;
}

function mistakesIn(text: string, env: Record<string, string> = {}): string[] {
  const file = writeConfig(text);
  try {
    parseServiceConfig({ ...env, LONGWATCH_CONFIG: file });
    return [];
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    return thrown.mistakes.map((mistake) => mistake.replace(`${file}: `, ""));
  }
}

test("the published JSON Schema is the one that files are read with", () => {
  const published = JSON.parse(readFileSync(path.join(DOCS, "longwatch.schema.json"), "utf8"));
  expect(published, "npm run -s longwatch -- config schema > docs/longwatch.schema.json").toEqual(
    toJsonSchema(),
  );
});

test("the example file is right, and says what it seems to", () => {
  const example = readFileSync(path.join(DOCS, "longwatch.example.yaml"), "utf8");
  const file = writeConfig(example);
  mkdirSync(path.join(path.dirname(file), "secrets"));
  writeFileSync(path.join(path.dirname(file), "secrets", "slack-url"), "https://hooks.example.com/T0\n");
  writeFileSync(path.join(path.dirname(file), "secrets", "pager-signing-key"), SIGNING_SECRET);
  const env = {
    LONGWATCH_CONFIG: file,
    PAGER_URL: "https://pager.example.com/in",
    ELASTIC_API_KEY: "T0-elastic",
  };
  const { alerting } = parseServiceConfig(env);
  expect(alerting.channels).toMatchObject([
    { name: "terminal", kind: "terminal" },
    { name: "chat", kind: "slack" },
    { name: "pager", kind: "webhook" },
  ]);
  expect(alerting.destinations).toMatchObject([
    { name: "siem", kind: "elastic", zones: null, format: "event", startAgoMs: 0 },
    { name: "disk", kind: "file", zones: [101], where: [{ field: "action" }], startAgoMs: 72 * 3_600_000 },
  ]);
  const { root, quietHours, inhibitions, links } = alerting.routing;
  expect(root.routes[0]).toMatchObject({
    channels: ["pager"],
    continue: true,
    timing: { groupWaitMs: 10_000, repeatIntervalMs: 3_600_000 },
  });
  expect(root.routes[3]?.timing.repeatIntervalMs).toBe(4 * 3_600_000);
  expect(quietHours).toMatchObject([{ fromMinute: 22 * 60, toMinute: 7 * 60, critical: "tell" }]);
  expect(links).toEqual([
    {
      title: "Runbook SQL injection",
      url: "https://wiki.example.com/runbooks/sqli",
      matchers: { rule: ["942*"] },
    },
    {
      title: "Zone dashboard",
      url: "https://grafana.example.com/d/waf?var-zone={zone}&var-rule={rule}&from={from_ms}&to={to_ms}",
      matchers: {},
    },
    {
      title: "When Longwatch is in trouble",
      url: "https://wiki.example.com/longwatch",
      matchers: { kind: ["self"] },
    },
  ]);
  expect(inhibitions).toMatchObject([{ equal: ["zone"] }]);
  expect(sensitivityOf(alerting.detection, 102, "920100")).toEqual({ z: 4.5, floor: 10 });
  expect(sensitivityOf(alerting.detection, 101, "920100")).toEqual({ z: 3.5, floor: 10 });
  expect(sensitivityOf(alerting.detection, 101, "942100")).toEqual({ z: 3.5, floor: 30 });
  expect(lowestFloor(alerting.detection)).toBe(10);
  expect(`${inspect(alerting, { depth: 9 })}${JSON.stringify(alerting)}`).not.toMatch(
    /T0|whsec_|pager\.example/,
  );
});

test("without a file every channel of the environment gets every notification at once", () => {
  const env = { LONGWATCH_WEBHOOK_URL: "https://example.com", LONGWATCH_WEBHOOK_SECRET: SIGNING_SECRET };
  const { alerting } = parseServiceConfig({ ...env, LONGWATCH_SPIKE_Z: "4" });
  expect(alerting.routing).toEqual(routeToAll(["terminal", "webhook"]));
  expect(alerting.routing.root.timing.groupWaitMs).toBe(0);
  expect(alerting.detection).toEqual({
    z: 4,
    floor: 10,
    sources: "on",
    verifyCrawlers: true,
    knownSources: [],
    overrides: [],
  });
});

test("a file without channels routes to those of the environment, and an empty file changes nothing", () => {
  const detecting = parseConfig({
    LONGWATCH_CONFIG: writeConfig(
      "detection: { z: 5, verify_crawlers: false, known_sources: [{ ip: [198.51.100.0/24], ua: [ours*], reason: scan, until: 2026-12-01T00:00:00Z }] }",
    ),
  });
  expect(detecting.alerting.detection.knownSources).toEqual([
    { kind: "ip", pattern: "198.51.100.0/24", zoneIds: null, reason: "scan", untilMs: Date.UTC(2026, 11) },
    { kind: "ua", pattern: "ours*", zoneIds: null, reason: "scan", untilMs: Date.UTC(2026, 11) },
  ]);
  expect(detecting.alerting.detection).toMatchObject({ z: 5, verifyCrawlers: false });
  const empty = parseConfig({ LONGWATCH_CONFIG: writeConfig("") });
  expect(empty.alerting).toEqual(parseConfig({}).alerting);
});

test("every mistake of the file and of the environment is listed at once, with path, value and rule", () => {
  const text = `
channels:
  chat: { kind: slak, url_file: x }
  t: { kind: terminal }
route:
  chanels: [t]
  group_wait: 30
  routes:
    - matchers: { zone: 101, severity: [critcal], rule: [942100] }
      routes: [{ repeat_interval: 5 hours }]
quiet_hours:
  - { time_zone: Europe/Amsterdm, from: 22:00, to: "25:00" }
detection: { z: 99, floor: 2.5, overrides: [{ zon: [3] }] }
`;
  expect(mistakesIn(text, { LONGWATCH_PORT: "x" })).toEqual([
    'LONGWATCH_PORT: "x": must be a whole number from 0 to 65535',
    expect.stringMatching(/^channels\.chat\.kind: "slak": must be one of terminal, webhook, slack\b/),
    "route.group_wait: 30: must be a time such as 30s, 5m, 4h or 1h30m, at most 30d",
    "route.routes[0].matchers.zone: 101: must be a list",
    'route.routes[0].matchers.rule[0]: 942100: must be a rule\'s id in quotes, or the beginning of ids and a star ("942*")',
    'route.routes[0].matchers.severity[0]: "critcal": must be one of info, warning, error, critical',
    'route.routes[0].routes[0].repeat_interval: "5 hours": must be a time such as 30s, 5m, 4h or 1h30m, at most 30d',
    "route.chanels: is not a setting: did you mean channels?",
    'quiet_hours[0].time_zone: "Europe/Amsterdm": must be a time zone such as Europe/Amsterdam or UTC',
    'quiet_hours[0].to: "25:00": must be a time of day between 00:00 and 23:59, in quotes',
    "detection.z: 99: must be at most 10",
    "detection.floor: 2.5: must be a whole number",
    "detection.overrides[0].zon: is not a setting: did you mean zone?",
  ]);
});

test("known sources beyond 500 of one zone are refused, whatever entries and kinds they are in", () => {
  const some = (count: number) =>
    Array.from({ length: count }, (_, i) => `198.51.${i >> 8}.${i & 255}`).join();
  const file = (count: number) =>
    `detection: { known_sources: [{ ip: [${some(count)}], reason: a }, { zone: [7], ua: [b*], reason: b }] }`;
  expect(mistakesIn(file(500))).toEqual([
    "detection.known_sources: 501 patterns: must be at most 500 known sources in zone 7, those of every zone among them",
  ]);
  expect(
    parseConfig({ LONGWATCH_CONFIG: writeConfig(file(499)) }).alerting.detection.knownSources,
  ).toHaveLength(500);
});

test("words of actions are added to the built-in ones, and a reload cannot take them unseen", () => {
  const read = (text: string) => parseConfig({ LONGWATCH_CONFIG: writeConfig(text) }).alerting.actions;
  const { classify, own } = read('actions: { stopped: [Tar-Pit, "499"], through: [deny] }');
  expect(["tarpit", "deny", "drop", "tag"].map(classify)).toEqual(["blocked", "logged", "blocked", "other"]);
  expect(own).toEqual({ stopped: ["Tar-Pit", "499"], through: ["deny"] });
  expect(read("actions: { stopped: [block, challenge], through: [log] }").classify("challenge")).toBe(
    "challenged",
  );
  expect(JSON.stringify(read("actions: { through: [a] }"))).not.toBe(JSON.stringify(read("")));
});

test("a word of an action in two states, a blank word and an overlong word are refused with field, value and rule", () => {
  const words = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`).join();
  const text = `actions:
  stopped: [Tar-Pit, Logged, " ", "-_", 429, ${"x".repeat(61)}, "a\tb"]
  through: ["tar pit", BLOCK, challenge, tag]
  unknown: [rewrite]
`;
  const rule = "must be a word of 1 to 60 printable characters, in quotes if it is a number";
  expect(mistakesIn(text)).toEqual([
    `actions.stopped[2]: " ": ${rule}`,
    `actions.stopped[3]: "-_": ${rule}`,
    `actions.stopped[4]: 429: ${rule}`,
    `actions.stopped[5]: "${"x".repeat(61)}": ${rule}`,
    `actions.stopped[6]: "a\\tb": ${rule}`,
    "actions.unknown: is not a setting: known here: stopped, through",
  ]);
  const fixed = "must be another word: block and challenge are stopped, and log is through";
  expect(
    mistakesIn('actions: { stopped: [Tar-Pit, Logged], through: ["tar pit", BLOCK, challenge, tag] }'),
  ).toEqual([
    'actions.stopped[0]: "Tar-Pit": must not be in actions.through as well',
    `actions.stopped[1]: "Logged": ${fixed}`,
    'actions.through[0]: "tar pit": must not be in actions.stopped as well',
    `actions.through[1]: "BLOCK": ${fixed}`,
    `actions.through[2]: "challenge": ${fixed}`,
  ]);
  expect(mistakesIn(`actions: { through: [${words(100)}] }`)).toEqual([]);
  expect(mistakesIn(`actions: { through: [${words(101)}] }`)).toEqual([
    "actions.through: must be at most 100 words",
  ]);
});

test("every mistake of the schedule is listed with what the job promises", () => {
  const text = `
schedule:
  poll-events: "0 0 0 * * *"
  walk-days: "*/90 61 * * * *"
  seal-windows: "*/5 * * * *"
  manage-partitions: "0 0 3 * * 1"
  archive-days: 3600
  sweeep: "* * * * * *"
  sweep: "*/20 * * * * *"
`;
  const field = (range: string, name: string) =>
    `must have *, or ${range}, or a list, range or step of these (*/5) as ${name}`;
  expect(mistakesIn(text)).toEqual([
    'schedule.manage-partitions: "0 0 3 * * 1": must run at least every 1 d: events of a day need its partition, and retention is counted in days',
    'schedule.poll-events: "0 0 0 * * *": must run at least every 12 h: a zone counts as not polled after three pauses, and the platform forgets events after 72 hours',
    `schedule.walk-days: "*/90 61 * * * *": ${field("0 to 59", "second, not */90")}`,
    `schedule.walk-days: "*/90 61 * * * *": ${field("0 to 59", "minute, not 61")}`,
    'schedule.seal-windows: "*/5 * * * *": must have six fields: second, minute, hour, day of month, month, day of week',
    "schedule.archive-days: 3600: must be text (in quotes if it looks like a number)",
    "schedule.sweeep: is not a setting: did you mean sweep?",
  ]);
});

test("an expression of the file replaces the default, also with the emulated platform", () => {
  const config = parseConfig({
    LONGWATCH_CONFIG: writeConfig('schedule: { poll-events: "0 */10 * * * *" }'),
  });
  expect(config).toMatchObject({
    pollEveryMs: 600_000,
    alerting: { schedule: { "poll-events": "0 */10 * * * *" } },
  });
  expect(toSchedule(config.alerting.schedule, { ...POLLED, isEmulated: true })).toMatchObject({
    "poll-events": "0 */10 * * * *",
    "reconcile-counts": "0 * * * * *",
    sweep: "*/10 * * * * *",
  });
});

test.each(TICK_NAMES)("the defaults of %s keep what the job promises", (name) => {
  for (const isEmulated of [false, true]) {
    const { [name]: expression } = toSchedule({}, { ...POLLED, isEmulated });
    expect(mistakesIn(`schedule: { ${name}: "${expression}" }`)).toEqual([]);
  }
});

test.each([
  [1, 10, 10],
  [50, 10, 10],
  [51, 10, 12],
  [75, 10, 15],
  [100, 10, 20],
  [150, 10, 30],
  [600, 10, 30],
  [10, 1, 20],
  [10, 0.5, 30],
])(
  "%i zones within %f requests a second are polled every %i seconds",
  (zones, requestsPerSecond, seconds) => {
    expect(pollExpression({ zones, requestsPerSecond })).toBe(`*/${seconds} * * * * *`);
  },
);

test("settings that exclude each other are listed too", () => {
  const text = `
channels: { chat: { kind: terminal } }
route: { continue: true, channels: [chatt] }
quiet_hours: [{ time_zone: UTC, from: "22:00", to: "22:00", channels: [zzz] }]
`;
  const env = { LONGWATCH_SLACK_WEBHOOK_URL: "https://example.com" };
  expect(mistakesIn(text, env)).toEqual([
    'quiet_hours[0].to: "22:00": must not be the same as from',
    "channels: must be left out if a LONGWATCH_WEBHOOK_ or LONGWATCH_SLACK_ variable is set",
    'route.channels[0]: "chatt": is not a channel: did you mean chat?',
    'quiet_hours[0].channels[0]: "zzz": is not a channel: must be one of chat',
    "route.continue: must be left out: the first route matches every alert",
  ]);
});

test("a mistake of one part of the file or of the environment hides none of the other parts", () => {
  const text = `
channels:
  chat: { kind: slack, url_env: CHAT, colour: red }
  mail: { kind: email, host: localhost, from: a, to: [b@example.com], login: { user: u, password_file: ./none } }
  page: { kind: pagerduty, routing_key_env: CHAT, url: http://10.0.0.7/x }
  hook: { kind: webhook, url_file: ./none, secrets_env: [CHAT], adress: x }
  prom: { kind: alertmanager, url_env: PROM, firing_for_hours: 2 }
  good: { kind: terminal }
  good: { kind: terminal }
route:
  channels: [chatt, prom]
  group_wai: 30s
  routes: [{ channels: [5, pagee], matchers: { zone: 101 } }]
quiet_hours:
  - { time_zone: Mars, from: "22:00", to: "22:00", channels: [nobody] }
detection: { z: 99 }
`;
  const env = {
    CHAT: "https://127.0.0.1/x",
    PROM: "https://prom.localhost/",
    LONGWATCH_FALLBACK_CHANNEL: "pager",
    LONGWATCH_HEARTBEAT_URL: "https://localhost/beat",
    LONGWATCH_PORT: "x",
  };
  const private_ = "(allow_private_networks, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS)";
  expect(mistakesIn(text, env).toSorted()).toEqual(
    [
      'LONGWATCH_PORT: "x": must be a whole number from 0 to 65535',
      "LONGWATCH_HEARTBEAT_URL: [secret]: localhost is not a public address (loopback)",
      'LONGWATCH_FALLBACK_CHANNEL: "pager": is not a channel: must be one of chat, mail, page, hook, prom, good: did you mean page?',
      "line 9, column 3: must be YAML (duplicate key)",
      "channels.chat.colour: is not a setting: known here: kind, url_file, url_env, allow_private_networks, ca_file, template",
      "channels.chat: url: 127.0.0.1 is not a public address (loopback)",
      "channels.mail: host: localhost is not a public address (loopback)",
      'channels.mail.from: "a": must have at least 3 characters',
      'channels.mail.login.password_file: "./none": must be a readable file',
      "channels.page: routingKey: must be 32 characters",
      `channels.page: url: must be https; plain http is allowed only if private addresses are allowed ${private_}`,
      "channels.page: url: 10.0.0.7 is not a public address (private)",
      "channels.hook.adress: is not a setting: known here: kind, url_file, url_env, secrets_file, secrets_env, format, allow_private_networks, ca_file",
      'channels.hook.url_file: "./none": must be a readable file',
      "channels.hook: secret 1 must start with whsec_",
      "channels.prom: url: localhost is not a public address (loopback)",
      'route.channels[0]: "chatt": is not a channel: did you mean chat?',
      "route.group_wai: is not a setting: did you mean group_wait?",
      "route.routes[0].channels[0]: 5: must be text (in quotes if it looks like a number)",
      'route.routes[0].channels[1]: "pagee": is not a channel: did you mean page?',
      "route.routes[0].matchers.zone: 101: must be a list",
      'quiet_hours[0].time_zone: "Mars": must be a time zone such as Europe/Amsterdam or UTC',
      'quiet_hours[0].channels[0]: "nobody": is not a channel: must be one of chat, mail, page, hook, prom, good',
      'quiet_hours[0].to: "22:00": must not be the same as from',
      "detection.z: 99: must be at most 10",
    ].toSorted(),
  );
});

test("an address of the environment that delivery refuses is a mistake of the service's settings", () => {
  const hook = { LONGWATCH_WEBHOOK_URL: "http://10.0.0.7/hook", LONGWATCH_WEBHOOK_SECRET: SIGNING_SECRET };
  const slack = { LONGWATCH_SLACK_WEBHOOK_URL: "https://169.254.169.254/" };
  expect(mistakesIn("", { ...hook, ...slack })).toEqual([
    expect.stringMatching(
      /^LONGWATCH_WEBHOOK_URL: \[secret\]: must be https; plain http is allowed only if /,
    ),
    "LONGWATCH_WEBHOOK_URL: [secret]: 10.0.0.7 is not a public address (private)",
    "LONGWATCH_SLACK_WEBHOOK_URL: [secret]: 169.254.169.254 is not a public address (metadata)",
  ]);
  expect(mistakesIn("", { ...hook, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true" })).toEqual([]);
});

test("a matcher names zones by number, by name and by label, and routing knows their numbers alone", () => {
  const text = `
zones:
  101: { name: shop, labels: { team: edge, tier: "1" } }
  102: { name: blog, labels: { team: content } }
  103: { labels: { team: edge } }
route:
  routes:
    - { matchers: { zone: [shop, 7] } }
    - { matchers: { zone_labels: { team: [edge] }, rule: ["942*"] } }
    - { matchers: { zone_labels: { team: [edge, content], tier: ["1"] } } }
    - { matchers: { zone: [blog, shop], zone_labels: { team: [edge] } } }
inhibit: [{ source: { zone: [blog] }, target: {} }]
quiet_hours: [{ time_zone: UTC, from: "22:00", to: "07:00", matchers: { zone: [shop] } }]
links: [{ title: x, url: "https://wiki.example/", matchers: { zone: [shop] } }]
detection: { overrides: [{ zone_labels: { team: [content] }, z: 5 }] }
`;
  const { routing, detection } = parseConfig({ LONGWATCH_CONFIG: writeConfig(text) }).alerting;
  expect(routing.root.routes.map(({ matchers }) => matchers)).toEqual([
    { zone: [101, 7] },
    { zone: [101, 103], rule: ["942*"] },
    { zone: [101] },
    { zone: [101] },
  ]);
  expect(routing.inhibitions[0]).toMatchObject({ source: { zone: [102] }, target: {} });
  expect(routing.quietHours[0]?.matchers).toEqual({ zone: [101] });
  expect(routing.links[0]?.matchers).toEqual({ zone: [101] });
  expect(sensitivityOf(detection, 102, "1").z).toBe(5);
  expect(sensitivityOf(detection, 101, "1").z).toBe(3.5);
  expect(routing.zones).toEqual({
    101: { name: "shop", labels: { team: "edge", tier: "1" } },
    102: { name: "blog", labels: { team: "content" } },
    103: { name: null, labels: { team: "edge" } },
  });
});

test("a zone that is not in zones, and what is wrong in zones, are listed with path, value and rule", () => {
  const text = `
zones:
  101: { name: shop, labels: { team: edge, zone: x } }
  102: { name: shop }
  103: { name: "7" }
  x: { name: y }
route:
  routes:
    - { matchers: { zone: [shopp, 5] } }
    - { matchers: { zone_labels: { team: [blue] } } }
    - { matchers: { zone: [5], zone_labels: { team: [edge] } } }
links: [{ title: x, url: "https://wiki.example/", matchers: { zone: [nowhere] } }]
`;
  expect(mistakesIn(text)).toEqual([
    expect.stringMatching(/^zones\.101\.labels\.zone: "x": must be a label's name: /),
    'zones.103.name: "7": must be text of 1 to 40 printable characters that is no number',
    "zones.x: must be a zone's number",
    'zones.102.name: "shop": must differ from the name of zone 101',
    'route.routes[0].matchers.zone[0]: "shopp": is not the name of a zone: did you mean shop?',
    "route.routes[1].matchers.zone_labels: must be labels that one zone in zones has together",
    "route.routes[2].matchers.zone: must name a zone that has the zone_labels",
    'links[0].matchers.zone[0]: "nowhere": is not the name of a zone: must be a number, or a name from zones',
  ]);
});

test("a secret in the wrong place is refused and never shown", () => {
  const texts = [
    "channels: { hook: { kind: webhook, url: https://SECRET, secrets_file: [x], url_file: x } }",
    "channels: { hook: { kind: webhook, url_file: https://SECRET, secrets_file: SECRET } }",
    "channels: { hook: { kind: webhook, url_file: SECRET, secrets_env: [SECRET] } }",
    "channels: { hook: { kind: webhook, url_env: HOOK, secrets_env: [HOOK] } }",
    "channels: { Hook: { kind: slack, url: https://SECRET } }",
    "channels: { hook: https://SECRET: }",
    "channels: { m: { kind: email, host: h, from: a@b.nl, to: [a@b.nl], login: { user: u, password: SECRET } } }",
    "channels: { hook: { kind: slack, url_env: HOOK, url_file: SECRET } }",
  ];
  for (const text of texts) {
    const mistakes = mistakesIn(text, { HOOK: "https://SECRET" });
    expect(mistakes).not.toEqual([]);
    expect(mistakes.join("\n")).not.toMatch(/SECRET\b/);
  }
  expect(mistakesIn(texts[0] ?? "")).toContain(
    "channels.hook.url: is not a setting: a secret is given as url_file or url_env",
  );
});

test("a YAML mistake is reported with line and column, and a missing file with its name", () => {
  expect(mistakesIn('a: [1\nb: 2\na: "SECRET')).toEqual([
    expect.stringMatching(/^line 2, column 1: must be YAML \(bad indent\)$/),
    expect.stringMatching(/^line 3/),
    expect.stringMatching(/^line 3/),
  ]);
  expect(() => parseConfig({ LONGWATCH_CONFIG: "/no/such.yaml" })).toThrow(
    'LONGWATCH_CONFIG: "/no/such.yaml": must be a readable file (ENOENT)',
  );
});

test("every mistake of a link is listed with path, value and rule", () => {
  const text = `
links:
  - { title: "", url: "https://wiki.example/{ip}" }
  - { title: ${"x".repeat(41)}, url: "javascript:alert(1)" }
  - { title: Runbook, url: "https://{zone}.example/", matcher: { rule: ["942*"] } }
  - { title: Runbook, matchers: { rule: [942100] } }
  - { url: https://wiki.example }
  - { title: 5, url: "https://wiki.example/{rule" }
`;
  expect(mistakesIn(text)).toEqual([
    'links[0].title: "": must be text of 1 to 40 characters',
    'links[0].url: "https://wiki.example/{ip}": must not contain {ip}; the placeholders are {zone} {rule} {alert} {from} {to} {from_ms} {to_ms} {from_s} {to_s}',
    `links[1].title: "${"x".repeat(41)}": must be text of 1 to 40 characters`,
    'links[1].url: "javascript:alert(1)": must begin with https:// or http://',
    'links[2].url: "https://{zone}.example/": must name a host, without a user and without a placeholder in the host',
    "links[2].matcher: is not a setting: did you mean matchers?",
    "links[3].url: not set: must be text (in quotes if it looks like a number)",
    'links[3].matchers.rule[0]: 942100: must be a rule\'s id in quotes, or the beginning of ids and a star ("942*")',
    "links[4].title: not set: must be text of 1 to 40 characters",
    "links[5].title: 5: must be text of 1 to 40 characters",
    'links[5].url: "https://wiki.example/{rule": must close every brace; write %7B and %7D for braces that are part of the URL',
  ]);
});

test("a link's user and password are refused and never shown", () => {
  const mistakes = mistakesIn('links: [{ title: x, url: "https://user:SECRET@wiki.example/" }]');
  expect(mistakes).toEqual([
    "links[0].url: [not shown]: must name a host, without a user and without a placeholder in the host",
  ]);
});

test("a title of 40 characters and a hundred links are right, one more of either is not", () => {
  const listOf = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      return `  - { title: ${"💥".repeat(40)}, url: https://wiki.example/${index}, matchers: { zone: [${index + 1}] } }`;
    }).join("\n");
  expect(mistakesIn(`links:\n${listOf(100)}`)).toEqual([]);
  expect(mistakesIn(`links:\n${listOf(101)}`)).toEqual(["links: must be at most 100 links"]);
});

test("a link that no message could show is a mistake", () => {
  const link = (title: string, more = "") => `{ title: ${title}, url: https://wiki.example/${more} }`;
  const five = ["a", "b", "c", "d", "e"].map((title) => link(title)).join(", ");
  const late = '{ title: runbook, url: https://wiki.example/r, matchers: { rule: ["942*"] } }';
  expect(mistakesIn(`links: [${late}, ${five}]`)).toEqual([]);
  expect(mistakesIn(`links: [${five}, ${late}, ${link("f")}]`)).toEqual([
    'links[5]: "runbook": must come before 5 links without matchers: a message shows 5',
    'links[6]: "f": must come before 5 links without matchers: a message shows 5',
  ]);
});

test("docs/routing.md names every place that a link may have, and its example is right", () => {
  const text = readFileSync(path.join(DOCS, "routing.md"), "utf8");
  const named = [...text.matchAll(/^\| (`\{.*?) \|/gm)].flatMap(([, cell = ""]) => cell.match(/\w+/g));
  expect(named).toEqual(PLACEHOLDERS);
  const [, example = ""] = /```yaml\n(links:[\s\S]*?)```/.exec(text) ?? [];
  expect(mistakesIn(example)).toEqual([]);
  expect(example).toContain("title: Zone dashboard");
});

test("nothing is quoted of a file that is no configuration file of Longwatch", () => {
  const secret = "cGFzc3dvcmQ";
  const foreign = [
    `root:$6$${secret}:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n`,
    secret,
    `- ${secret}`,
    `${secret}: 1`,
    `PASSWORD: ${secret}\nc: ${secret}\n`,
    `a: [${secret}\n`,
    `%${secret}\n`,
  ];
  for (const text of foreign) {
    const mistakes = mistakesIn(text);
    expect(mistakes).not.toEqual([]);
    expect(mistakes.join("\n")).not.toContain(secret);
  }
  expect(mistakesIn(`${secret}: 1`)[0]).toContain(
    "must be a Longwatch configuration file: known here: $schema, channels",
  );
});

function mistakeOf(env: Record<string, string>): string {
  try {
    parseServiceConfig(env);
    return "";
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

function expectNoRegularFile(file: string): void {
  const mistake = "must be a readable file (is not a regular file)";
  expect(mistakeOf({ LONGWATCH_CONFIG: file })).toContain(mistake);
  expect(mistakeOf({ EDGE_API_KEY_FILE: file })).toContain(mistake);
}

test("a pipe is refused before it is read", () => {
  const pipe = path.join(makeTemporaryFolder("kinds"), "pipe");
  makePipe(pipe);
  expectNoRegularFile(pipe);
});

test("a device, a folder and a file of any size are refused before they are read", () => {
  const folder = makeTemporaryFolder("kinds");
  const large = path.join(folder, "large");
  writeFileSync(large, "#".repeat(1_048_577));
  for (const file of ["/dev/zero", folder]) expectNoRegularFile(file);
  expect(mistakeOf({ LONGWATCH_CONFIG: large })).toContain(
    "must be a readable file (has more than 1048576 bytes)",
  );
  expect(mistakeOf({ LONGWATCH_CONFIG: path.join(folder, "none") })).toContain(
    "must be a readable file (ENOENT)",
  );
});

test("a file without links, and no file, link to nothing", () => {
  expect(parseConfig({}).alerting.routing.links).toEqual([]);
  expect(
    parseConfig({ LONGWATCH_CONFIG: writeConfig("route: { group_wait: 1s }") }).alerting.routing.links,
  ).toEqual([]);
});

test("every message links to its alert under LONGWATCH_PUBLIC_URL, before the links of the file", () => {
  const link = (name: string) => `{ title: ${name}, url: "https://wiki.example/${name}" }`;
  const file = writeConfig(`links: [${["a", "b", "c", "d"].map(link).join(", ")}]`);
  const env = { LONGWATCH_PUBLIC_URL: "https://waf.example/longwatch/" };
  const [first, search, second] = parseConfig({ ...env, LONGWATCH_CONFIG: file }).alerting.routing.links;
  expect(first).toEqual({
    title: "Open in Longwatch",
    url: "https://waf.example/longwatch/alerts/{alert}",
    matchers: {},
  });
  expect(search).toMatchObject({ isSearch: true, matchers: { kind: ["custom-condition"] } });
  expect(second?.title).toBe("a");
  expect(parseConfig(env).alerting.routing.links).toEqual([first, search]);
  expect(parseConfig({}).alerting.routing.links).toEqual([]);
  const five = writeConfig(`links: [${["a", "b", "c", "d", "e"].map(link).join(", ")}]`);
  expect(() => parseConfig({ ...env, LONGWATCH_CONFIG: five })).toThrow(
    /links\[4\]: "e": must come before 4 links/,
  );
  expect(parseConfig({ LONGWATCH_CONFIG: five }).alerting.routing.links.length).toBe(5);
});

test.each<[Record<string, string>, string | null]>([
  [{ LONGWATCH_HOST: "10.0.0.5" }, "http://10.0.0.5:8080"],
  [{ LONGWATCH_HOST: "2001:db8::5", LONGWATCH_PORT: "80" }, "http://[2001:db8::5]:80"],
  [{ LONGWATCH_HOST: "10.0.0.5", LONGWATCH_PUBLIC_URL: "https://waf.example" }, "https://waf.example"],
  [{}, null],
  [{ LONGWATCH_HOST: "localhost" }, null],
  [{ LONGWATCH_HOST: "0.0.0.0" }, null],
  [{ LONGWATCH_HOST: "::" }, null],
  [{ LONGWATCH_HOST: "10.0.0.5", LONGWATCH_PORT: "0" }, null],
  [{ LONGWATCH_HOST: "10.0.0.5", LONGWATCH_ROLES: "alerts" }, null],
])("with %j, messages link to the console at %s", (env, url) => {
  const { consoleUrl, alerting } = parseConfig(env);
  expect(consoleUrl).toBe(url);
  expect(alerting.routing.links.map((link) => link.url)).toEqual(
    url === null ? [] : [`${url}/alerts/{alert}`, `${url}/explorer`],
  );
});

test.each([
  "ftp://waf.example",
  "https://user:word@waf.example",
  "https://waf.example/?a=b",
  "https://waf.example/#x",
  "waf.example",
])("%s is no public URL", (url) => {
  expect(() => parseConfig({ LONGWATCH_PUBLIC_URL: url })).toThrow(/LONGWATCH_PUBLIC_URL/);
});

test("the effect of a verdict on a severity is read, and each mistake in it is named", () => {
  const read = (yaml: string) =>
    parseConfig({ LONGWATCH_CONFIG: writeConfig(yaml) }).alerting.routing.verdict;
  expect(read("detection: { verdict: { lower: [scanner] } }")).toEqual({ raise: true, lower: ["scanner"] });
  expect(read("detection: { verdict: { raise: false } }")).toEqual({ raise: false, lower: [] });
  expect(mistakesIn("detection: { verdict: { raise: 1, lower: [misfire, attack], raised: true } }")).toEqual([
    "detection.verdict.raise: 1: must be true or false",
    'detection.verdict.lower[0]: "misfire": must be one of scanner, broken-client',
    'detection.verdict.lower[1]: "attack": must be one of scanner, broken-client',
    "detection.verdict.raised: is not a setting: did you mean raise?",
  ]);
});

test("conditions are read with their zones as numbers, and each mistake is named", () => {
  const read = (text: string) => parseConfig({ LONGWATCH_CONFIG: writeConfig(text) }).alerting.conditions;
  expect(
    read(`
zones: { 101: { name: shop } }
conditions:
  admin: { where: ["path:wildcard:/admin*"], zone: [shop], more_than: 3, within: 90m, severity: error }
  silent: { absent: true }`),
  ).toEqual([
    {
      name: "admin",
      filters: ["path:wildcard:/admin*"],
      query: "",
      zoneIds: [101],
      moreThan: 3,
      distinct: null,
      withinMinutes: 90,
      severity: "error",
    },
    {
      name: "silent",
      filters: [],
      query: "",
      zoneIds: null,
      moreThan: null,
      distinct: null,
      withinMinutes: 60,
      severity: "warning",
    },
  ]);
  for (const [text, mistake] of [
    [
      "{ a: { where: ['colour:eq:red'] } }",
      /conditions\.a\.where: "colour:eq:red": field must be one of rule/,
    ],
    ["{ a: {} }", /conditions\.a\.where: must leave some events out: this matches every event/],
    [
      "{ a: { absent: true, within: 25h } }",
      /conditions\.a\.within: 1 d 1 h: must be whole minutes, from 1m to 24h/,
    ],
    ["{ a: { query: x, distinct: url } }", /conditions\.a\.more_than: 0: must be from 1 to 1,000/],
    ["{ A b: { absent: true } }", /conditions\.A b: "?.*must be lower-case letters/],
    [
      "{ a: { absent: true, zone: [nowhere] } }",
      /conditions\.a\.zone\[0\]: "nowhere": is not the name of a zone/,
    ],
  ] as const)
    expect(() => read(`conditions: ${text}`)).toThrow(mistake);
});
