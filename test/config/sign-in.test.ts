import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { parseConfig, parseServiceConfig } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const PUBLIC = { LONGWATCH_PUBLIC_URL: "https://longwatch.example" };

function writeConfig(text: string): string {
  const folder = makeTemporaryFolder("sign-in");
  mkdirSync(path.join(folder, "secrets"));
  writeFileSync(path.join(folder, "secrets", "sign-in"), "hush-hush\n");
  writeFileSync(path.join(folder, "longwatch.yaml"), text);
  return path.join(folder, "longwatch.yaml");
}

function mistakesIn(entry: object | string, env: Record<string, string> = PUBLIC, zones = {}): string[] {
  const file = writeConfig(JSON.stringify({ sign_in: entry, zones }));
  try {
    parseServiceConfig({ ...env, LONGWATCH_CONFIG: file });
    return [];
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    return thrown.mistakes.map((mistake) => mistake.replace(`${file}: `, ""));
  }
}

const GOOD = {
  issuer: "https://login.example.com",
  client_id: "longwatch",
  claim: "groups",
  roles: { desk: { role: "reader" } },
};

test("the sign_in of the example file is right, and its secret is not printed", () => {
  const example = readFileSync(path.join(import.meta.dirname, "../../docs/longwatch.example.yaml"), "utf8");
  const [, block = ""] = /^(# sign_in:\n(?:# .*\n)+)/m.exec(example) ?? [];
  const file = writeConfig(block.replaceAll(/^# /gm, ""));
  const { signIn } = parseServiceConfig({ ...PUBLIC, LONGWATCH_CONFIG: file }).alerting;
  expect(signIn).toMatchObject({
    label: "Example",
    issuer: "https://login.example.com/realms/staff",
    scopes: ["openid", "profile", "email"],
    roles: {
      "waf-admins": { role: "admin", zoneIds: null, isMasked: false },
      "shop-team": { role: "reader", zoneIds: [101], isMasked: true },
    },
    allowPrivateNetworks: false,
  });
  expect(signIn?.clientSecret?.reveal()).toBe("hush-hush");
  expect(inspect(signIn)).not.toContain("hush-hush");
});

test("zones are named as in matchers, and a label that is missing is the issuer's host", () => {
  const roles = { desk: { role: "reader", zone: ["shop", 7] } };
  const zones = { 101: { name: "shop" } };
  const file = writeConfig(JSON.stringify({ sign_in: { ...GOOD, roles }, zones }));
  const { signIn } = parseServiceConfig({ ...PUBLIC, LONGWATCH_CONFIG: file }).alerting;
  expect(signIn).toMatchObject({ label: "login.example.com", roles: { desk: { zoneIds: [101, 7] } } });
  expect(
    mistakesIn({ ...GOOD, roles: { desk: { role: "reader", zone: ["shopp"] } } }, PUBLIC, zones),
  ).toEqual(['sign_in.roles.desk.zone[0]: "shopp": is not the name of a zone: did you mean shop?']);
});

test("a service with sign_in needs its public address, and a command does not", () => {
  expect(mistakesIn(GOOD, {})).toEqual([
    "LONGWATCH_PUBLIC_URL: not set: must be set if the configuration file has sign_in",
  ]);
  expect(
    parseConfig({ LONGWATCH_CONFIG: writeConfig(JSON.stringify({ sign_in: GOOD })) }).alerting.signIn,
  ).not.toBe(null);
});

test.each<[string, object | string, string[]]>([
  ["no entry", "yes", ['sign_in: "yes": must be a list of names and values']],
  [
    "what is missing",
    {},
    [
      "sign_in.issuer: not set: must be a URL",
      "sign_in.client_id: not set: must be text of 1 to 200 printable characters",
      "sign_in.claim: not set: must be text of 1 to 200 printable characters",
      "sign_in.roles: not set: must be a list of names and values",
    ],
  ],
  [
    "a secret in the file itself",
    { ...GOOD, client_secret: "hush" },
    ["sign_in.client_secret: is not a setting: a secret is given as client_secret_file or client_secret_env"],
  ],
  [
    "a secret that is not there",
    { ...GOOD, client_secret_env: "SIGN_IN_SECRET" },
    ['sign_in.client_secret_env: "SIGN_IN_SECRET": must be the name of an environment variable that is set'],
  ],
  [
    "plain http to a private address",
    { ...GOOD, issuer: "http://10.0.0.8" },
    [
      "sign_in.issuer: must be https; plain http is allowed only if private addresses are allowed (allow_private_networks, LONGWATCH_ALLOW_PRIVATE_WEBHOOKS)",
      "sign_in.issuer: 10.0.0.8 is not a public address (private)",
    ],
  ],
  [
    "scopes without openid",
    { ...GOOD, scopes: ["groups"] },
    ["sign_in.scopes: must be a list of scopes, openid among them"],
  ],
  ["no roles", { ...GOOD, roles: {} }, ["sign_in.roles: must have at least one value of the claim"]],
  [
    "a role that does not exist",
    { ...GOOD, roles: { desk: { role: "boss" } } },
    ['sign_in.roles.desk.role: "boss": must be one of reader, exporter, operator, admin'],
  ],
  [
    "an admin for one zone",
    { ...GOOD, roles: { desk: { role: "admin", zone: [1] } } },
    [
      "sign_in.roles.desk: must not be admin with zone, account or masked: an admin can create a key without these limits",
    ],
  ],
])("a mistake is named with its rule: %s", (_, entry, mistakes) => {
  expect(mistakesIn(entry)).toEqual(mistakes);
});
