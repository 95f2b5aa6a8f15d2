import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { startServiceProcess } from "../faults/service-process.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

/** No server listens at port 9, so a start that reaches the database fails there. */
const NO_DATABASE = "postgres://127.0.0.1:9/none";

test("start refuses a taken port with exit code 2 before it connects to Postgres", async () => {
  const server = createServer().listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const env = { DATABASE_URL: NO_DATABASE, LONGWATCH_DATA_DIR: makeTemporaryFolder("port") };
  const taken = startServiceProcess({ ...env, LONGWATCH_PORT: String(port) });
  expect(await taken.exited).toBe(2);
  expect(taken.printed()).toContain(`LONGWATCH_PORT: ${port}: must be free: another program listens there`);
  expect(taken.printed()).not.toContain("Postgres");
  // A process that serves no HTTP needs no port.
  const without = startServiceProcess({ ...env, LONGWATCH_PORT: String(port), LONGWATCH_ROLES: "alerts" });
  expect(await without.exited).toBe(1);
  expect(without.printed()).toContain("Connecting to Postgres");
});

test("start refuses a host that is not of this machine before it connects to Postgres", async () => {
  const env = { DATABASE_URL: NO_DATABASE, LONGWATCH_DATA_DIR: makeTemporaryFolder("host") };
  const service = startServiceProcess({ ...env, LONGWATCH_HOST: "203.0.113.9", LONGWATCH_PORT: "8099" });
  expect(await service.exited).toBe(2);
  expect(service.printed()).toContain("LONGWATCH_HOST: 203.0.113.9: must be an address of this machine");
  expect(service.printed()).not.toContain("Postgres");
});
