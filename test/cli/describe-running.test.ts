import { expect, test } from "vitest";
import { describeRunning } from "../../src/cli/describe-running.ts";
import { createSecret } from "../../src/secret.ts";

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
  };
  const text = describeRunning(running, "/home/somebody/longwatch/.longwatch");
  expect(text.split("\n").filter((line) => line.length > 80)).toEqual([]);
  expect(text).toContain("An attack on zone 101 begins a minute after the start.");
  expect(text).toContain("  npm run -s longwatch -- status ");
  expect(text).toContain('curl -H "AccessKey: $KEY" http://127.0.0.1:8080/api/v1/alerts\n');
  expect(text).toContain("http://127.0.0.1:34807/_emulator");
});

test("on the real platform it names the zones, and no address where nothing listens", () => {
  const running = { platform: { ...platform, isEmulated: false }, httpUrl: null, zoneIds: [7] };
  const text = describeRunning(running, "/var/lib/longwatch");
  expect(text.startsWith("Watching zone 7.\n")).toBe(true);
  expect(text).not.toMatch(/http:|attack/);
});
