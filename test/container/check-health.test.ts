import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeRuntimeFile } from "#app/runtime-file.ts";
import { quickEnvironment } from "../support/quick-environment.ts";

const PROGRAM = path.join(import.meta.dirname, "../../src/app/check-health.ts");

function makeDataDir(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-health-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function check(dataDir: string): Promise<unknown> {
  const child = spawn(process.execPath, [PROGRAM], {
    stdio: "inherit",
    env: { ...quickEnvironment(), LONGWATCH_DATA_DIR: dataDir },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [code] = await once(child, "exit");
  return code;
}

/** Starts a service that answers every request alike, and returns the requested paths. */
async function serve(status: number) {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(status).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, server };
}

const running = (httpUrl: string | null) => ({ pid: process.pid, databaseUrl: "postgres://none", httpUrl });

test("a service that answers /livez is healthy", async () => {
  const dataDir = makeDataDir();
  const { url, asked } = await serve(200);
  writeRuntimeFile(dataDir, running(url));
  expect(await check(dataDir)).toBe(0);
  expect(asked).toEqual(["/livez"]);
});

test("a replica whose roles serve no HTTP is healthy while it runs", async () => {
  const dataDir = makeDataDir();
  writeRuntimeFile(dataDir, running(null));
  expect(await check(dataDir)).toBe(0);
});

test("where no service has come up there is none to be healthy", async () => {
  expect(await check(makeDataDir())).toBe(1);
});

test("a service that answers with an error, or refuses connections, is not healthy", async () => {
  const dataDir = makeDataDir();
  const { url, server } = await serve(500);
  writeRuntimeFile(dataDir, running(url));
  expect(await check(dataDir)).toBe(1);
  server.close();
  server.closeAllConnections();
  await once(server, "close");
  expect(await check(dataDir)).toBe(1);
});
