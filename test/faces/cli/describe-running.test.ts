import { expect, test } from "vitest";
import { describeRunning } from "#faces/cli/start/describe-running.ts";
import { createSecret } from "#lib/secret.ts";

const platform = {
  url: "http://127.0.0.1:34807",
  accessKey: createSecret("key"),
  zoneIds: [101, 102],
  requestsPerSecond: 10,
};

test("on the emulator it says when the attack comes, where to look and how to end it, within 80 columns", () => {
  const running = {
    platform: { ...platform, isEmulated: true },
    httpUrl: "http://127.0.0.1:8080",
    zoneIds: [101, 102],
    attack: { zoneId: 101, startsInMs: 42_000, alertId: null },
  };
  const text = describeRunning(running, { dataDir: "/home/somebody/longwatch/.longwatch" });
  expect(text.split("\n").filter((line) => line.length > 80)).toEqual([]);
  expect(text).toContain("An attack on zone 101 begins in 42 s.");
  expect(text).toContain("  npm run -s longwatch -- status ");
  expect(text).toContain('curl -H "AccessKey: $KEY" http://127.0.0.1:8080/api/v1/alerts\n');
  expect(text).toContain("http://127.0.0.1:34807/_emulator");
});

test("on the real platform it names the zones, and no address where nothing listens", () => {
  const running = {
    platform: { ...platform, isEmulated: false },
    httpUrl: null,
    zoneIds: [7],
    attack: null,
  };
  const text = describeRunning(running, { dataDir: "/var/lib/longwatch" });
  expect(text.startsWith("Watching zone 7.\n")).toBe(true);
  expect(text).not.toMatch(/http:|attack/);
  expect(text).toContain("State is kept in /var/lib/longwatch.");
});

test("it promises no alert while the alert of the attack is open, and dates an attack that has begun", () => {
  const running = { platform: { ...platform, isEmulated: true }, httpUrl: null, zoneIds: [101, 102] };
  const attack = { zoneId: 101, startsInMs: -90_000, alertId: 1 };
  const open = describeRunning({ ...running, attack }, { dataDir: null });
  expect(open).toContain(
    "Its alert is open, so no new alert appears:\n  npm run -s longwatch -- alerts show 1\n",
  );
  expect(open).not.toContain("appears here");
  const begun = describeRunning({ ...running, attack: { ...attack, alertId: null } }, { dataDir: null });
  expect(begun).toContain("An attack on zone 101 began 90 s ago. Its alert appears here,");
});

test("with a database elsewhere it does not say that the state is in the data folder", () => {
  const running = {
    platform: { ...platform, isEmulated: false },
    httpUrl: null,
    zoneIds: [7],
    attack: null,
  };
  expect(describeRunning(running, { dataDir: null })).not.toContain("State is kept");
});

test("in the image commands are called without npm", () => {
  const running = {
    platform: { ...platform, isEmulated: false },
    httpUrl: null,
    zoneIds: [7],
    attack: null,
  };
  const text = describeRunning(running, { dataDir: null, command: "longwatch" });
  expect(text).toContain("\n  longwatch status ");
  expect(text).not.toContain("npm");
});
