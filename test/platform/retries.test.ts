import { describe, expect } from "vitest";
import type { EdgeClient } from "#platform/edge-client.ts";
import { ACCESS_KEY, failure, lastHour, listPage, NOW, test, today, ZONE } from "./support/edge-test.ts";

const container = {
  name: "web",
  imageName: "nginx",
  imageNamespace: "library",
  imageTag: "1",
  imageRegistryId: "1",
};
const app = { name: "shop", autoScaling: { min: 1, max: 2 }, regionSettings: {} };
const searchPage = { rows: [], groups: null, total: 0, totalPages: 0, page: 0 };

interface Case {
  readonly name: string;
  readonly call: (client: EdgeClient) => Promise<unknown>;
  readonly answer: unknown;
}

const REPEATABLE: Case[] = [
  { name: "GET", call: (client) => client.listEventLogs(today), answer: listPage() },
  {
    name: "PUT",
    call: (client) => client.updateApplication({ appId: "a", request: app }),
    answer: { id: "a" },
  },
  {
    name: "DELETE",
    call: (client) => client.deleteVolumeInstances({ appId: "a", volumeId: "v" }),
    answer: { ids: [] },
  },
  { name: "the search POST", call: (client) => client.searchEventLogs(lastHour), answer: searchPage },
  { name: "the export POST", call: (client) => client.exportEventLogs(lastHour), answer: "timestamp,\n" },
  {
    name: "the DNS check POST",
    call: (client) => client.checkDnsZone({ Name: "a.test" }),
    answer: { Available: true },
  },
];
const ONCE: Case[] = [
  {
    name: "the key type POST",
    call: (client) =>
      client.setHostnameKeyType({ pullZoneId: 1, request: { Hostname: "a.test", KeyType: 0 } }),
    answer: "",
  },
  {
    name: "the container POST",
    call: (client) => client.addContainer({ appId: "a", request: container }),
    answer: { id: "c" },
  },
];

describe.for([...REPEATABLE, ...ONCE])("$name", ({ call, answer }) => {
  test("is repeated after a 429, because nothing was done", async ({ platform, edge }) => {
    platform.reply(429);
    platform.reply(200, answer);
    await call(edge.client);
    expect(platform.requests).toHaveLength(2);
    expect(platform.requests[1]?.body).toBe(platform.requests[0]?.body);
  });
});

describe.for(REPEATABLE)("$name", ({ call, answer }) => {
  test("is repeated after 5xx and after a cut socket", async ({ platform, edge }) => {
    platform.reply(503, "<html></html>", { "content-type": "text/html" });
    platform.handle((response) => void response.destroy());
    platform.reply(502, "Bad Gateway");
    platform.reply(200, answer);
    await call(edge.client);
    expect(platform.requests).toHaveLength(4);
    expect(edge.sleeps).toEqual([1_000, 2_000, 4_000]);
  });

  test("gives up after three retries and leaves the next try to the caller", async ({ platform, edge }) => {
    for (let count = 0; count < 4; count++) platform.reply(500, "");
    expect(await failure(call(edge.client))).toMatchObject({
      code: "EDGE_UNAVAILABLE",
      disposition: "retry",
      status: 500,
    });
    expect(platform.requests).toHaveLength(4);
  });
});

describe.for(ONCE)("$name", ({ call }) => {
  test("is not repeated after a 5xx", async ({ platform, edge }) => {
    platform.reply(503, "", { "retry-after": "1" });
    expect(await failure(call(edge.client))).toMatchObject({
      code: "EDGE_UNAVAILABLE",
      disposition: "give-up",
    });
    expect(platform.requests).toHaveLength(1);
  });

  test("is not repeated after a cut socket: it may have happened", async ({ platform, edge }) => {
    platform.handle((response) => void response.destroy());
    expect(await failure(call(edge.client))).toMatchObject({
      code: "EDGE_NETWORK",
      disposition: "give-up",
      status: null,
    });
    expect(platform.requests).toHaveLength(1);
  });
});

describe("how long a retry waits", () => {
  test.for([
    { when: "seconds", headers: { "retry-after": "7" }, sleep: 7_000 },
    { when: "fractional seconds", headers: { "retry-after": "0.5" }, sleep: 500 },
    {
      when: "a date",
      headers: { "retry-after": new Date(NOW + 9_000).toUTCString(), date: new Date(NOW).toUTCString() },
      sleep: 9_000,
    },
    {
      when: "a date by the server's own clock, ours being an hour off",
      headers: {
        "retry-after": new Date(NOW + 3_605_000).toUTCString(),
        date: new Date(NOW + 3_600_000).toUTCString(),
      },
      sleep: 5_000,
    },
    { when: "nothing", headers: {}, sleep: 1_000 },
    { when: "zero", headers: { "retry-after": "0" }, sleep: 1_000 },
    { when: "a negative number", headers: { "retry-after": "-5" }, sleep: 1_000 },
    { when: "junk", headers: { "retry-after": "soon" }, sleep: 1_000 },
    {
      when: "a date in the past",
      headers: { "retry-after": new Date(NOW - 60_000).toUTCString(), date: new Date(NOW).toUTCString() },
      sleep: 1_000,
    },
  ])("$when in Retry-After", async ({ headers, sleep }, { platform, edge }) => {
    platform.reply(429, { Message: "Slow down." }, headers);
    platform.reply(200, listPage());
    await edge.client.listEventLogs(today);
    expect(edge.sleeps).toEqual([sleep]);
  });

  test.for([
    { retryAfter: "31", waitMs: 31_000 },
    { retryAfter: "86400", waitMs: 900_000 },
    { retryAfter: "999999999999999", waitMs: 900_000 },
    { retryAfter: "9999999999999999", waitMs: 900_000 },
    { retryAfter: "9".repeat(400), waitMs: 900_000 },
    { retryAfter: `${"0".repeat(20)}31`, waitMs: 31_000 },
    { retryAfter: "Fri, 31 Dec 9999 23:59:59 GMT", waitMs: 900_000 },
  ])(
    "an absurd Retry-After of $retryAfter goes back to the caller as a wait",
    async ({ retryAfter, waitMs }, { platform, edge }) => {
      platform.reply(429, "", { "retry-after": retryAfter });
      const thrown = await failure(edge.client.searchEventLogs(lastHour));
      expect(thrown).toMatchObject({ code: "EDGE_RATE_LIMITED", disposition: "wait", waitMs, status: 429 });
      expect(edge.sleeps).toEqual([]);
    },
  );

  test("a Retry-After that does not fit into the call's deadline goes back as a wait", async ({
    platform,
    open,
  }) => {
    platform.reply(503, "", { "retry-after": "6" });
    const { client, sleeps } = open({ timeoutMs: 5_000 });
    expect(await failure(client.listEventLogs(today))).toMatchObject({
      code: "EDGE_UNAVAILABLE",
      disposition: "wait",
      waitMs: 6_000,
    });
    expect(sleeps).toEqual([]);
  });

  test("429 after 429 without Retry-After ends as a wait of the next back-off", async ({
    platform,
    edge,
  }) => {
    for (let count = 0; count < 4; count++) platform.reply(429, { statusCode: 500 });
    expect(await failure(edge.client.listEventLogs(today))).toMatchObject({
      code: "EDGE_RATE_LIMITED",
      disposition: "wait",
      waitMs: 8_000,
    });
    expect(edge.sleeps).toEqual([1_000, 2_000, 4_000]);
  });

  test("jitter takes any part of the back-off and never more", async ({ platform, open }) => {
    const values = [0, 0.25, 0.999];
    const { client, sleeps } = open({ random: () => values.shift() ?? 0 });
    for (let count = 0; count < 3; count++) platform.reply(500);
    platform.reply(200, listPage());
    await client.listEventLogs(today);
    expect(sleeps).toEqual([0, 500, 3_996]);
  });

  test("back-off stops growing at 30 seconds", async ({ platform, open }) => {
    const { client, sleeps } = open({ maxAttempts: 8, timeoutMs: 600_000 });
    for (let count = 0; count < 7; count++) platform.reply(500);
    platform.reply(200, listPage());
    await client.listEventLogs(today);
    expect(sleeps).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });
});

test("a rejected request is never repeated", async ({ platform, edge }) => {
  platform.reply(400, { title: "Bad Request", status: 400 });
  expect(await failure(edge.client.searchEventLogs(lastHour))).toMatchObject({ disposition: "give-up" });
  expect(platform.requests).toHaveLength(1);
});

test("a 202 block that says too many requests is treated as one", async ({ platform, edge }) => {
  const error = { statusCode: 429, success: false, message: "Later.", errorKey: null };
  platform.reply(202, { data: null, error });
  platform.reply(200, { data: { totalTriggers: 3 }, error: null });
  expect(await edge.client.getRuleMetrics({ shieldZoneId: ZONE, ruleId: "1" })).toMatchObject({
    data: { totalTriggers: 3 },
  });
});

test("every attempt is reported once, with what became of it", async ({ platform, edge }) => {
  platform.reply(503, "", { "cdn-requestid": "r1" });
  platform.reply(200, listPage(), { "cdn-requestid": "r2" });
  await edge.client.listEventLogs(today);
  expect(edge.attempts).toMatchObject([
    {
      operation: "list-event-logs",
      attempt: 1,
      code: "EDGE_UNAVAILABLE",
      status: 503,
      requestId: "r1",
      retryInMs: 1_000,
    },
    { operation: "list-event-logs", attempt: 2, code: null, status: 200, requestId: "r2", retryInMs: null },
  ]);
  expect(JSON.stringify(edge.attempts)).not.toContain(ACCESS_KEY);
});

test("a platform that is not there is a network error that says so", async ({ open }) => {
  const { client } = open({ baseUrl: "http://127.0.0.1:1" });
  const thrown = await failure(client.listEventLogs(today));
  expect(thrown).toMatchObject({ code: "EDGE_NETWORK", disposition: "retry", status: null });
  expect(thrown.message).toContain("ECONNREFUSED");
});
