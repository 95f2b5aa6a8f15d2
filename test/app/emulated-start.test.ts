import { expect, test } from "vitest";
import { startServiceProcess } from "../faults/service-process.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const WARNING =
  "EDGE_API_URL is not set. This service starts an emulated platform, and every event is invented.";

/** No server listens at port 9: each start fails after its first lines. */
const FAILING = { DATABASE_URL: "postgres://127.0.0.1:9/none", LONGWATCH_PORT: "0" };

test.each([{ NODE_ENV: "production" }, {}])(
  "the first line of a start without the platform's address says so (%j)",
  async (env) => {
    const service = startServiceProcess({
      ...env,
      ...FAILING,
      LONGWATCH_DATA_DIR: makeTemporaryFolder("emulated"),
    });
    expect(await service.exited).toBe(1);
    expect(service.printed().split("\n")[0]).toBe(WARNING);
  },
);

test("a start with the platform's address says nothing of an emulated platform", async () => {
  const edge = { EDGE_API_URL: "http://127.0.0.1:9", EDGE_API_KEY: "key", EDGE_SHIELD_ZONES: "101" };
  const service = startServiceProcess({
    ...edge,
    ...FAILING,
    LONGWATCH_DATA_DIR: makeTemporaryFolder("real"),
  });
  expect(await service.exited).toBe(1);
  expect(service.printed()).toContain("Connecting to Postgres");
  expect(service.printed()).not.toContain("emulated");
});
