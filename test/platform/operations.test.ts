import { describe, expect } from "vitest";
import type { EdgeClient } from "#platform/edge-client.ts";
import { ACCESS_KEY, lastHour, listPage, test, today, ZONE } from "./support/edge-test.ts";
import { app, container } from "./support/requests.ts";

describe("requests", () => {
  test.for<{
    name: string;
    call: (client: EdgeClient) => Promise<unknown>;
    answer: unknown;
    sent: object;
    body?: unknown;
  }>([
    {
      name: "list API keys, always with both query parameters",
      call: (client) => client.listApiKeys({}),
      answer: { Items: [], CurrentPage: 1, TotalItems: 0, HasMoreItems: false },
      sent: { method: "GET", path: "/apikey?page=1&perPage=1000" },
    },
    {
      name: "set a hostname's key type",
      call: (client) =>
        client.setHostnameKeyType({ pullZoneId: 5, request: { Hostname: "a.test", KeyType: 1 } }),
      answer: "",
      sent: { method: "POST", path: "/pullzone/5/updatePrivateKeyType" },
      body: { Hostname: "a.test", KeyType: 1 },
    },
    {
      name: "check a DNS zone",
      call: (client) => client.checkDnsZone({ Name: "a.test" }),
      answer: { Available: false },
      sent: { method: "POST", path: "/dnszone/checkavailability" },
      body: { Name: "a.test" },
    },
    {
      name: "add a container",
      call: (client) => client.addContainer({ appId: "a/b", request: container }),
      answer: { id: "a-1" },
      sent: { method: "POST", path: "/mc/apps/a%2Fb/containers" },
      body: container,
    },
    {
      name: "update an application",
      call: (client) => client.updateApplication({ appId: "app", request: app }),
      answer: { id: "app" },
      sent: { method: "PUT", path: "/mc/apps/app" },
      body: app,
    },
    {
      name: "delete volume instances",
      call: (client) => client.deleteVolumeInstances({ appId: "app", volumeId: "data x" }),
      answer: { ids: ["i"] },
      sent: { method: "DELETE", path: "/mc/apps/app/volumes/data%20x" },
    },
    {
      name: "search, with clamping left to the server",
      call: (client) =>
        client.searchEventLogs({
          shieldZoneId: ZONE,
          request: { ...lastHour.request, pageSize: 9_999, buckets: 501, groupBy: ["ip", "ruleId"] },
        }),
      answer: { rows: null, groups: [], total: 0 },
      sent: { method: "POST", path: "/shield/event-logs/101/search" },
      body: { ...lastHour.request, pageSize: 9_999, buckets: 501, groupBy: ["ip", "ruleId"] },
    },
    {
      name: "export",
      call: (client) =>
        client.exportEventLogs({
          shieldZoneId: ZONE,
          request: { ...lastHour.request, filters: [{ field: "ip", op: "cidr", value: ["2001:db8::/32"] }] },
        }),
      answer: "timestamp\n",
      sent: { method: "POST", path: "/shield/event-logs/101/export" },
      body: { ...lastHour.request, filters: [{ field: "ip", op: "cidr", value: ["2001:db8::/32"] }] },
    },
    {
      name: "list a day's first page, without a token segment",
      call: (client) => client.listEventLogs(today),
      answer: listPage(),
      sent: { method: "GET", path: "/shield/event-logs/101/11-21-2026" },
    },
    {
      name: "list a later page, its token percent-encoded",
      call: (client) => client.listEventLogs({ ...today, continuationToken: "Zm9v/Ym+Fy==?#%" }),
      answer: listPage(),
      sent: { method: "GET", path: "/shield/event-logs/101/11-21-2026/Zm9v%2FYm%2BFy%3D%3D%3F%23%25" },
    },
    {
      name: "get a recommendation",
      call: (client) => client.getRecommendation({ shieldZoneId: ZONE, ruleId: "942100" }),
      answer: { success: true, recommendation: "ok" },
      sent: { method: "GET", path: "/shield/waf/rules/review-triggered/ai-recommendation/101/942100" },
    },
    {
      name: "get a rule's metrics",
      call: (client) => client.getRuleMetrics({ shieldZoneId: ZONE, ruleId: "942100" }),
      answer: { data: {} },
      sent: { method: "GET", path: "/shield/metrics/shield-zone/101/waf-rule/942100" },
    },
  ])("$name", async ({ call, answer, sent, body }, { platform, edge }) => {
    platform.reply(200, answer);
    await call(edge.client);
    const [request] = platform.requests;
    expect(request).toMatchObject(sent);
    expect(request?.headers).toMatchObject({ accesskey: ACCESS_KEY, "accept-encoding": "gzip" });
    expect(request?.headers["accept"]).toBeUndefined();
    if (body === undefined) {
      expect(request?.body).toBe("");
      expect(request?.headers["content-type"]).toBeUndefined();
    } else {
      expect(JSON.parse(request?.body ?? "")).toEqual(body);
      expect(request?.headers["content-type"]).toBe("application/json");
    }
  });

  test("below the path prefix of the base address", async ({ platform, open }) => {
    platform.reply(200, listPage());
    await open({ baseUrl: `${platform.url}/proxy/v1/` }).client.listEventLogs(today);
    expect(platform.requests[0]?.path).toBe("/proxy/v1/shield/event-logs/101/11-21-2026");
  });
});

describe("answers", () => {
  test("any 2xx without a body is a changed key type", async ({ platform, edge }) => {
    platform.reply(204);
    await edge.client.setHostnameKeyType({ pullZoneId: 5, request: { Hostname: "a.test", KeyType: 0 } });
    expect(platform.pending()).toBe(0);
  });

  test("a bare array of keys is the only page", async ({ platform, edge }) => {
    platform.reply(200, [{ Id: 1, Key: "k", Roles: null, Extra: true }]);
    expect(await edge.client.listApiKeys({})).toEqual({
      Items: [{ Id: 1, Key: "k", Roles: [], Extra: true }],
      CurrentPage: 1,
      TotalItems: 1,
      HasMoreItems: false,
    });
  });

  test("a container as the platform really sends it: empty texts and null probes", async ({
    platform,
    edge,
  }) => {
    platform.reply(201, {
      id: "a-1",
      packageId: "p",
      imageDigest: "",
      probes: { startup: null },
      endpoints: null,
      imagePullPolicy: "always",
    });
    const answer = await edge.client.addContainer({ appId: "a", request: container });
    expect(answer).toMatchObject({
      id: "a-1",
      imageDigest: "",
      endpoints: [],
      volumeMounts: [],
      imagePullPolicy: "always",
    });
  });

  test("metrics keep their days and read missing counters as zero", async ({ platform, edge }) => {
    platform.reply(200, {
      data: {
        totalTriggers: 3,
        overviewPastTwentyEightDays: { "20-11-2026": { totalTriggers: 3, blockedRequests: null } },
      },
      error: { statusCode: 0, success: false, message: null, errorKey: null },
    });
    const { data } = await edge.client.getRuleMetrics({ shieldZoneId: ZONE, ruleId: "942100" });
    expect(data?.overviewPastTwentyEightDays).toEqual({
      "20-11-2026": { totalTriggers: 3, blockedRequests: 0, loggedRequests: 0, challengedRequests: 0 },
    });
  });

  test("search gives the page, its raw bytes and the request id", async ({ platform, edge }) => {
    const raw =
      '{ "rows": [ {"logId":"a","timestamp":1,"log":{"Url":"x"},"fields":{"ja4":"t13d"}} ],\n"groups":null,"total":1,"totalPages":1,"page":0,"later":1}';
    platform.reply(200, raw, { "cdn-requestid": "r-9" });
    const { page, body, requestId } = await edge.client.searchEventLogs(lastHour);
    expect(page).toMatchObject({ groups: [], total: 1, later: 1 });
    expect(body.toString()).toBe(raw);
    expect(requestId).toBe("r-9");
  });
});
