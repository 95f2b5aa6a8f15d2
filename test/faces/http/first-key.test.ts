import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createAccessKey } from "#model/access-key.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { type ServiceProcess, startServiceProcess } from "../../faults/service-process.ts";
import { call } from "./start-archive.ts";

const PATIENCE = { timeout: 30_000, interval: 50 };

async function openServices() {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-keys-"));
  const database = await createMigratedDatabase();
  onTestFinished(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });
  return async (more: Record<string, string> = {}) => {
    const service = startServiceProcess({
      DATABASE_URL: database.url,
      LONGWATCH_DATA_DIR: folder,
      LONGWATCH_ROLES: "http",
      LONGWATCH_LOG_LEVEL: "debug",
      EDGE_API_URL: "http://127.0.0.1:9",
      EDGE_API_KEY: "key",
      EDGE_SHIELD_ZONES: "101",
      ...more,
    });
    onTestFinished(() => end(service));
    await expect.poll(() => service.printed(), PATIENCE).toContain("service started");
    const [, url = ""] = /"httpUrl":"([^"]+)"/.exec(service.printed()) ?? [];
    return { service, url, end: () => end(service) };
  };
}

async function end(service: ServiceProcess): Promise<void> {
  service.child.kill("SIGKILL");
  await service.exited;
}

test("S1: the first start prints an admin key, once and in no log line; the second prints none", async () => {
  const start = await openServices();
  const first = await start();
  await expect.poll(() => first.service.printed(), PATIENCE).toContain("an admin key for the API");
  const key = /^ {2}export KEY=(lw_\S+)$/m.exec(first.service.printed())?.[1] ?? "";
  expect((await call(first.url, "/apikey", key)).status).toBe(200);
  expect((await call(first.url, "/apikey", `${key}x`)).status).toBe(401);
  expect(first.service.printed().split(key)).toHaveLength(2);
  const logged = first.service
    .printed()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  expect(logged.join("\n")).not.toContain(key.split("_")[2]);
  await first.end();

  const second = await start();
  expect((await call(second.url, "/apikey", key)).status).toBe(200);
  expect(second.service.printed()).not.toMatch(/An admin key|lw_/);
});

test("S14: a key of the configuration lets in and is printed nowhere", async () => {
  const start = await openServices();
  const { key } = createAccessKey();
  const { service, url } = await start({ LONGWATCH_ADMIN_KEY: key });

  expect((await call(url, "/apikey", key)).status).toBe(200);
  expect(service.printed()).not.toContain(key.split("_")[2]);
});

test("S14: a start whose output is no terminal prints no sign-in link, and says how to get one", async () => {
  const start = await openServices();
  const { service, url } = await start({ LONGWATCH_ADMIN_KEY: createAccessKey().key });
  await expect.poll(() => service.printed(), PATIENCE).toContain("To get a link that signs in once:");
  expect(service.printed()).toContain(`The console: ${url}`);
  expect(service.printed()).toMatch(/longwatch (?:-- )?sign-in$/m);
  expect(service.printed()).not.toMatch(/sign-in#/);
});
