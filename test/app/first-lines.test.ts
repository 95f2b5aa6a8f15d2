import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { startServiceProcess } from "../faults/service-process.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const WARNING =
  "EDGE_API_URL is not set. This service starts an emulated platform, and every event is invented.";

/** No server listens at port 9, so a start that reaches the database fails there. */
const start = (env: Record<string, string>) =>
  startServiceProcess({
    DATABASE_URL: "postgres://127.0.0.1:9/none",
    LONGWATCH_DATA_DIR: makeTemporaryFolder("start"),
    ...env,
  });

async function takePort(): Promise<string> {
  const server = createServer().listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return String((server.address() as AddressInfo).port);
}

test("start refuses a taken port with exit code 2 before it connects to Postgres, and names the emulated platform first", async () => {
  const port = await takePort();
  const taken = start({ NODE_ENV: "production", LONGWATCH_PORT: port });
  expect(await taken.exited).toBe(2);
  expect(taken.printed()).toContain(`LONGWATCH_PORT: ${port}: must be free: another program listens there`);
  expect(taken.printed()).not.toContain("Postgres");
  expect(taken.printed().split("\n")[0]).toBe(WARNING);
});

test("start refuses a host that is not of this machine before it connects to Postgres, and names the emulated platform first", async () => {
  const service = start({ LONGWATCH_HOST: "203.0.113.9", LONGWATCH_PORT: "8099" });
  expect(await service.exited).toBe(2);
  expect(service.printed()).toContain("LONGWATCH_HOST: 203.0.113.9: must be an address of this machine");
  expect(service.printed()).not.toContain("Postgres");
  expect(service.printed().split("\n")[0]).toBe(WARNING);
});

test("a start that serves no HTTP needs no port, and with the platform's address it says nothing of an emulated platform", async () => {
  const service = start({
    LONGWATCH_PORT: await takePort(),
    LONGWATCH_ROLES: "alerts",
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "101",
  });
  expect(await service.exited).toBe(1);
  expect(service.printed()).toContain("Connecting to Postgres");
  expect(service.printed()).not.toContain("emulated");
});
