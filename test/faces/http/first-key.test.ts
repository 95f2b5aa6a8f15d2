import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { createApp } from "#app/app.ts";
import { parseServiceConfig } from "#config/config.ts";
import { createAccessKey } from "#model/access-key.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { type ServiceProcess, startServiceProcess } from "../../faults/service-process.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { call } from "./start-archive.ts";

const PATIENCE = { timeout: 30_000, interval: 50 };

async function openSettings(more: Record<string, string> = {}) {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  return {
    DATABASE_URL: database.url,
    LONGWATCH_DATA_DIR: makeTemporaryFolder("keys"),
    LONGWATCH_ROLES: "http",
    LONGWATCH_PORT: "0",
    LONGWATCH_LOG_LEVEL: "debug",
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "101",
    ...more,
  };
}

async function start(settings: Record<string, string>) {
  const service = startServiceProcess(settings);
  onTestFinished(() => end(service));
  await expect.poll(() => service.printed(), PATIENCE).toContain("service started");
  const [, url = ""] = /"httpUrl":"([^"]+)"/.exec(service.printed()) ?? [];
  return { service, url };
}

async function end(service: ServiceProcess): Promise<void> {
  service.child.kill("SIGKILL");
  await service.exited;
}

test("S1: the first start prints an admin key, once and in no log line; the second makes none", async () => {
  const settings = await openSettings();
  const { service, url } = await start(settings);
  await expect.poll(() => service.printed(), PATIENCE).toContain("an admin key for the API");
  const key = /^ {2}export KEY=(lw_\S+)$/m.exec(service.printed())?.[1] ?? "";
  expect((await call(url, "/apikey", key)).status).toBe(200);
  expect((await call(url, "/apikey", `${key}x`)).status).toBe(401);
  expect(service.printed().split(key)).toHaveLength(2);
  const logged = service
    .printed()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  expect(logged.join("\n")).not.toContain(key.split("_")[2]);
  await end(service);

  const second = createApp({
    config: parseServiceConfig(settings),
    log: pino({ level: "silent" }),
    terminal: { write: (_: string, done: () => void) => (done(), true) },
    onStep: () => undefined,
  });
  onTestFinished(() => second.stop());
  const running = await second.start();
  // What a start prints a key of.
  expect(running.adminKey).toBeNull();
  expect((await call(running.httpUrl ?? "", "/apikey", key)).status).toBe(200);
});

test("S14: a key of the configuration lets in and is printed nowhere; S14: a start whose output is no terminal prints no sign-in link, and says how to get one", async () => {
  const { key } = createAccessKey();
  const { service, url } = await start(await openSettings({ LONGWATCH_ADMIN_KEY: key }));
  await expect.poll(() => service.printed(), PATIENCE).toContain("To get a link that signs in once:");
  expect((await call(url, "/apikey", key)).status).toBe(200);
  expect(service.printed()).not.toContain(key.split("_")[2]);
  expect(service.printed()).not.toContain("an admin key for the API");
  expect(service.printed()).toContain(`The console: ${url}`);
  expect(service.printed()).toMatch(/longwatch (?:-- )?sign-in$/m);
  expect(service.printed()).not.toMatch(/sign-in#/);
});
