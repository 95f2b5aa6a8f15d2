import { writeFileSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { parseServiceConfig } from "#config/config.ts";
import { secretsOf } from "#delivery/receivers/channels/registry.ts";
import { openDestinations } from "#delivery/receivers/sinks/destination.ts";
import { UsageError } from "#lib/errors.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const ENV = { HOOK_URL: "https://siem.example.com/in/secret-path", HOOK_KEY: SIGNING_SECRET, TOKEN: "tok-1" };

function read(text: string, env: Record<string, string> = ENV) {
  const file = path.join(makeTemporaryFolder("forward"), "longwatch.yaml");
  writeFileSync(file, text);
  return parseServiceConfig({ ...env, LONGWATCH_CONFIG: file });
}

function mistakesIn(text: string, env?: Record<string, string>): string[] {
  try {
    read(text, env);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    return thrown.mistakes.map((mistake) => mistake.replace(/^\/.*?longwatch\.yaml: /, ""));
  }
}

test("a destination is read with its zones as numbers, its filters and its start", () => {
  const { alerting } = read(`
zones: { 101: { name: shop } }
forward:
  hook:
    kind: webhook
    url_env: HOOK_URL
    secrets_env: [HOOK_KEY]
    zones: [shop, 102]
    where: ["action:eq:blocked", "path:not-contains:/health,/status"]
    format: raw
    batch_events: 50
    start: -1d12h
  disk: { kind: file, folder: /var/lib/longwatch/events }
  old: { kind: file, folder: /var/lib/longwatch/old, start: all }
`);
  expect(alerting.destinations).toMatchObject([
    {
      name: "hook",
      kind: "webhook",
      zones: [101, 102],
      where: [
        { field: "action", op: "eq", value: ["blocked", "block"] },
        { field: "path", op: "contains", not: true, value: ["/health", "/status"] },
      ],
      format: "raw",
      batchEvents: 50,
      startAgoMs: 36 * 3_600_000,
    },
    { name: "disk", zones: null, where: [], format: "event", batchEvents: 500, startAgoMs: 0 },
    { name: "old", startAgoMs: null, settings: { maxMegabytes: 100 } },
  ]);
  expect(secretsOf(alerting.destinations).map((secret) => secret.reveal())).toEqual([
    ENV.HOOK_URL,
    SIGNING_SECRET,
  ]);
  expect(`${inspect(alerting, { depth: 9 })}${JSON.stringify(alerting)}`).not.toMatch(/secret-path|whsec_/);
  const opened = openDestinations(alerting.destinations, { clock: Date.now });
  expect(opened.map(({ name, sink }) => [name, sink.count])).toEqual([
    ["hook", null],
    ["disk", null],
    ["old", null],
  ]);
  expect(opened[0]).not.toHaveProperty("settings");
});

test("a file without forward has no destinations", () => {
  expect(read("detection: { z: 5 }").alerting.destinations).toEqual([]);
});

test("every mistake of a destination is named at once, with path, value and rule", () => {
  const text = `
zones: { 101: { name: shop } }
forward:
  Upper: { kind: file, folder: /x }
  a: { kind: gelf }
  b: { kind: file, folder: events, max_megabytes: 0, colour: red }
  c:
    kind: webhook
    url_env: PLAIN_URL
    secrets_env: [NOT_SET_KEY]
    zones: [shopp]
    where: ["nonsense", "colour:eq:red", "ip:around:10.0.0.0/8", "path:cidr:10.0.0.0/8", "action:eq:wave", "method:eq:POST"]
    format: cef
    batch_events: 5001
    start: yesterday
`;
  expect(mistakesIn(text, { PLAIN_URL: "http://10.0.0.7/x" })).toEqual([
    "forward.Upper: must be lower-case letters, digits, - and _, at most 63",
    expect.stringMatching(/^forward\.a\.kind: "gelf": must be one of .*webhook, file$/),
    'forward.b.folder: "events": must be an absolute path',
    "forward.b.max_megabytes: 0: must be at least 1",
    "forward.b.colour: is not a setting: known here: kind, folder, max_megabytes, zones, where, format, batch_events, start",
    'forward.c.format: "cef": must be one of raw, event, ocsf',
    "forward.c.batch_events: 5001: must be a whole number from 1 to 5000",
    'forward.c.start: "yesterday": must be now, all, or a time before now such as -72h',
    'forward.c.where[0]: "nonsense": must be field:op:value[,value] such as ip:cidr:203.0.113.0/24; write \\, for a comma in a value',
    'forward.c.where[1]: "colour:eq:red": field: "colour": must be one of rule, action, address, country, network, host, path, method, url, agent, ja4, feature, zone',
    'forward.c.where[2]: "ip:around:10.0.0.0/8": op: "around": must be one of eq, in, contains, cidr, wildcard',
    'forward.c.where[3]: "path:cidr:10.0.0.0/8": op: "cidr": cidr applies to the field address only',
    expect.stringMatching(
      /^forward\.c\.where\[4\]: "action:eq:wave": value: "wave": for action must be block \(or blocked\)/,
    ),
    'forward.c.where[5]: "method:eq:POST": the method is in the records of events only, and cannot select the events of a destination',
    'forward.c.secrets_env: "NOT_SET_KEY": must be the name of an environment variable that is set',
    "forward.c: url: must be https; plain http is allowed only if private addresses are allowed (allow_private_networks, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS)",
    "forward.c: url: 10.0.0.7 is not a public address (private)",
    'forward.c.zones[0]: "shopp": is not the name of a zone: did you mean shop?',
  ]);
});

test("a destination may have its own permission for private addresses", () => {
  const hook =
    "forward: { h: { kind: webhook, url_env: U, secrets_env: [K], allow_private_networks: true } }";
  expect(mistakesIn(hook, { U: "http://localhost:8080/x", K: SIGNING_SECRET })).toEqual([]);
});

test("at most 20 destinations and 50 filters of one destination are taken", () => {
  const many = Array.from({ length: 21 }, (_, at) => `  d${at}: { kind: file, folder: /x }`).join("\n");
  expect(mistakesIn(`forward:\n${many}`)).toEqual(["forward: must be at most 20 destinations"]);
  const filters = Array.from({ length: 51 }, (_, at) => `"path:contains:/${at}"`).join(", ");
  expect(mistakesIn(`forward: { d: { kind: file, folder: /x, where: [${filters}] } }`)).toEqual([
    "forward.d.where: must have at most 50 items",
  ]);
});
