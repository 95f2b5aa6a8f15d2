import { writeFileSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import {
  accountsOf,
  parseConfig,
  parseConfigElsewhere,
  parseServiceConfig,
  requireEdge,
  zonesOf,
} from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { findTightest, pollExpression } from "#model/schedule.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const EDGE = {
  EDGE_API_URL: "https://api.example.test",
  EDGE_API_KEY: "canary-default",
  EDGE_SHIELD_ZONES: "101,102",
};
const SHOP = { key_env: "SHOP_KEY", zones: [201, 202] };
const env = { ...EDGE, SHOP_KEY: "canary-shop" };

function write(file: object): string {
  const folder = makeTemporaryFolder("accounts");
  writeFileSync(path.join(folder, "shop-key"), "canary-shop\n");
  const name = path.join(folder, "longwatch.yaml");
  writeFileSync(name, JSON.stringify(file));
  return name;
}

const read = (file: object, given: Record<string, string> = env) =>
  parseServiceConfig({ ...given, LONGWATCH_CONFIG: write(file) });

function mistakesOf(run: () => unknown): readonly string[] {
  try {
    run();
    return [];
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown;
    return thrown.mistakes.map((mistake) => mistake.replace(/^\S+\.yaml: /, ""));
  }
}

test("the EDGE_ variables are the account default, before the accounts of the file", () => {
  const config = read({ accounts: { shop: { ...SHOP, requests_per_second: 5 } } });
  expect(accountsOf(config)).toMatchObject([
    { name: "default", url: EDGE.EDGE_API_URL, zoneIds: [101, 102], requestsPerSecond: 10 },
    { name: "shop", url: EDGE.EDGE_API_URL, zoneIds: [201, 202], requestsPerSecond: 5 },
  ]);
  expect(zonesOf(config)).toEqual([101, 102, 201, 202]);
  expect(config.alerting.routing.zones).toMatchObject({
    101: { labels: { account: "default" }, account: "default" },
    202: { labels: { account: "shop" }, account: "shop" },
  });
  expect(`${inspect(config, { depth: 9 })}${JSON.stringify(config)}`).not.toContain("canary");
  const keyOf = (asked: object) => requireEdge(config, asked).accessKey.reveal();
  expect([{}, { zoneId: 202 }, { account: "shop" }, { zoneId: 999 }].map(keyOf)).toEqual([
    "canary-default",
    "canary-shop",
    "canary-shop",
    "canary-default",
  ]);
  expect(mistakesOf(() => requireEdge(config, { account: "shoe" }))).toEqual([
    '--account "shoe" must be one of default, shop',
  ]);
});

test("without accounts in the file no zone gets a label, and a label account is a person's own", () => {
  const zones = { 101: { labels: { account: "acme" } } };
  const { alerting } = read({ zones });
  expect(alerting.routing.zones).toEqual({ 101: { name: null, labels: { account: "acme" } } });
  expect(read({}).alerting.routing).not.toHaveProperty("zones");
});

test("accounts alone need no EDGE_ variable", () => {
  const account = { ...SHOP, address: "https://shop.example.test/edge/" };
  const config = read({ accounts: { shop: account } }, { SHOP_KEY: "canary-shop" });
  expect(accountsOf(config)).toMatchObject([{ name: "shop", url: account.address }]);
});

test("a matcher by account is one by the account's zones", () => {
  const { routing, detection } = read(
    {
      accounts: { shop: SHOP, blog: { ...SHOP, zones: [301] } },
      zones: { 201: { name: "till" } },
      channels: { terminal: { kind: "terminal" }, chat: { kind: "slack", url_env: "SLACK_URL" } },
      route: {
        routes: [
          { matchers: { account: ["shop"] }, channels: ["chat"] },
          { matchers: { account: ["shop", "blog"], zone: ["till", 301] } },
          { matchers: { account: ["default"] } },
        ],
      },
      detection: { overrides: [{ account: ["blog"], floor: 50 }] },
    },
    { ...env, SLACK_URL: "https://hooks.example.com/T0" },
  ).alerting;
  expect(routing.root.routes.map(({ matchers }) => matchers)).toEqual([
    { zone: [201, 202] },
    { zone: [201, 301] },
    { zone: [101, 102] },
  ]);
  expect(detection.overrides).toEqual([{ zone: [301], floor: 50 }]);
});

test.each([
  [
    "a zone of two accounts",
    { shop: SHOP, blog: { ...SHOP, zones: [301, 202] } },
    "accounts.blog.zones[1]: 202: must be a zone of one account, once: accounts.shop has it",
  ],
  [
    "a zone of the variables",
    { shop: { ...SHOP, zones: [102] } },
    "accounts.shop.zones[0]: 102: must be a zone of one account, once: EDGE_SHIELD_ZONES has it",
  ],
  ["no key", { shop: { zones: [201] } }, "accounts.shop.key: not set: must be given as key_file or key_env"],
  [
    "a key in the file itself",
    { shop: { ...SHOP, key: "canary-typed" } },
    "accounts.shop.key: is not a setting: a secret is given as key_file or key_env",
  ],
  ["no zones", { shop: { key_env: "SHOP_KEY" } }, "accounts.shop.zones: not set: must be a list"],
  [
    "a wrong address",
    { shop: { ...SHOP, address: "ftp://x" } },
    'accounts.shop.address: "ftp://x": must be an http or https URL without user name, query and fragment',
  ],
  [
    "the name default",
    { default: SHOP },
    "accounts.default: must have another name: default is the account of EDGE_API_KEY",
  ],
  [
    "too many requests",
    { shop: { ...SHOP, requests_per_second: 5_000 } },
    "accounts.shop.requests_per_second: 5000: must be at most 1000",
  ],
])("config check refuses %s", (_, accounts, mistake) => {
  const mistakes = mistakesOf(() => read({ accounts }));
  expect(mistakes).toEqual([mistake]);
  expect(mistakes.join()).not.toContain("canary");
});

test("config check refuses matchers of accounts that are not there, and a zone's own label account", () => {
  const route = {
    routes: [{ matchers: { account: ["shoe"] } }, { matchers: { account: ["shop"], zone: [101] } }],
  };
  const zones = { 201: { labels: { account: "acme" } } };
  expect(mistakesOf(() => read({ accounts: { shop: SHOP }, zones, route }))).toEqual([
    "zones.201.labels.account: must be left out: the account's name is this label",
    'route.routes[0].matchers.account[0]: "shoe": is not an account: must be one of default, shop',
    "route.routes[1].matchers.account: must have a zone that the other matchers name",
  ]);
  expect(mistakesOf(() => read({ route: { routes: [{ matchers: { account: ["default"] } }] } }))).toEqual([
    'route.routes[0].matchers.account[0]: "default": is not an account: there is none in accounts',
  ]);
});

test("an account without an address needs that of the variables, and a key of other characters is refused", () => {
  const given = { SHOP_KEY: "canary kéy" };
  const mistakes = mistakesOf(() => read({ accounts: { shop: SHOP } }, given));
  expect(mistakes).toEqual([
    "accounts.shop.address: not set: must be given, because EDGE_API_URL is not set",
    "accounts.shop.key_env: [not shown]: must be printable ASCII without blanks",
  ]);
});

test("a command that cannot read an account's key knows its zones, and says so when it needs the key", () => {
  const LONGWATCH_CONFIG = write({ accounts: { shop: SHOP } });
  const config = parseConfigElsewhere({ ...EDGE, LONGWATCH_CONFIG });
  expect(zonesOf(config)).toEqual([101, 102, 201, 202]);
  expect(mistakesOf(() => requireEdge(config))).toEqual(["accounts.shop: the key must be readable here"]);
  expect(mistakesOf(() => parseConfig({ ...EDGE, LONGWATCH_CONFIG }))).toEqual([
    'accounts.shop.key_env: "SHOP_KEY": must be the name of an environment variable that is set',
  ]);
});

test("an account's key is read again from its file", () => {
  const file = write({ accounts: { shop: { key_file: "shop-key", zones: [201] } } });
  const [, shop] = accountsOf(parseServiceConfig({ ...EDGE, LONGWATCH_CONFIG: file }));
  expect(shop?.rereadKey()).toBe("same");
  writeFileSync(path.join(path.dirname(file), "shop-key"), "canary-new\n");
  expect(shop?.rereadKey()).toBe("changed");
  expect(shop?.key?.reveal()).toBe("canary-new");
  writeFileSync(path.join(path.dirname(file), "shop-key"), "");
  expect(shop?.rereadKey()).toEqual({ mistake: "must not be empty" });
  expect(shop?.key?.reveal()).toBe("canary-new");
});

test.each([
  ["one account, by its own budget", [{ zones: 100, requestsPerSecond: 100 }], 10],
  [
    "two small accounts",
    [
      { zones: 5, requestsPerSecond: 10 },
      { zones: 5, requestsPerSecond: 10 },
    ],
    10,
  ],
  [
    "the account with the fewest requests a zone",
    [
      { zones: 5, requestsPerSecond: 10 },
      { zones: 10, requestsPerSecond: 1 },
    ],
    20,
  ],
  [
    "all zones of many accounts together",
    Array.from({ length: 30 }, () => ({ zones: 10, requestsPerSecond: 10 })),
    30,
  ],
])("the pause between two polls fits %s", (_, polled, seconds) => {
  expect(pollExpression(findTightest(polled))).toBe(`*/${seconds} * * * * *`);
});
