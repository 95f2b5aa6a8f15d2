import { describe, expect } from "vitest";
import type { EdgeClient } from "#platform/edge-client.ts";
import { failure, lastHour, NOW, test, today, ZONE } from "./support/edge-test.ts";
import { app, container } from "./support/requests.ts";

describe("the strict writer sends nothing that breaks the contract", () => {
  test.for<{ name: string; call: (client: EdgeClient) => Promise<unknown>; says: string[] }>([
    {
      name: "a window that ends before it begins",
      call: (client) => client.searchEventLogs({ shieldZoneId: ZONE, request: { from: NOW, to: NOW } }),
      says: ["request.to 1795262400000: must be after from"],
    },
    {
      name: "an unknown member, next to other mistakes",
      call: (client) =>
        client.searchEventLogs({ shieldZoneId: 0, request: { from: -1, to: NOW, sort: "asc" } as never }),
      says: ["shieldZoneId 0: ", "request.from -1: ", "request: sort: not a member of this body"],
    },
    {
      name: "cidr on another field",
      call: (client) =>
        client.searchEventLogs({
          shieldZoneId: ZONE,
          request: { ...lastHour.request, filters: [{ field: "url", op: "cidr", value: ["10.0.0.0/8"] }] },
        }),
      says: ['request.filters[0].op "cidr": cidr applies to the field ip only'],
    },
    {
      name: "a network that is none",
      call: (client) =>
        client.exportEventLogs({
          shieldZoneId: ZONE,
          request: { ...lastHour.request, filters: [{ field: "ip", op: "cidr", value: ["10.0.0.0/99"] }] },
        }),
      says: ["request.filters[0].value"],
    },
    {
      name: "grouping in an export",
      call: (client) =>
        client.exportEventLogs({
          shieldZoneId: ZONE,
          request: { ...lastHour.request, groupBy: ["ip"] } as never,
        }),
      says: ["request: groupBy: not a member of this body"],
    },
    {
      name: "a day of the wrong format",
      call: (client) => client.listEventLogs({ ...today, date: "2026-11-21" }),
      says: ['date "2026-11-21": must be a day written MM-dd-yyyy'],
    },
    {
      name: "a day that does not exist",
      call: (client) => client.listEventLogs({ ...today, date: "02-30-2026" }),
      says: ['date "02-30-2026"'],
    },
    {
      name: "a token that would climb the path",
      call: (client) => client.listEventLogs({ ...today, continuationToken: ".." }),
      says: ['continuationToken "..": must not be a dot segment'],
    },
    {
      name: "a rule id that would climb the path",
      call: (client) => client.getRecommendation({ shieldZoneId: ZONE, ruleId: ".." }),
      says: ["ruleId"],
    },
    {
      name: "a rule id the metrics do not know",
      call: (client) => client.getRuleMetrics({ shieldZoneId: ZONE, ruleId: "a/b" }),
      says: ['ruleId "a/b"'],
    },
    {
      name: "too many keys per page",
      call: (client) => client.listApiKeys({ page: 0, perPage: 1_001 }),
      says: ["page 0", "perPage 1001"],
    },
    {
      name: "a hostname that is no text",
      call: (client) => client.setHostnameKeyType({ pullZoneId: 1, request: { Hostname: 5 } as never }),
      says: ["request.Hostname 5: "],
    },
    {
      name: "a mount path that is no text",
      call: (client) =>
        client.addContainer({
          appId: "a",
          request: { ...container, volumeMounts: [{ name: "d", mountPath: 1 as never }] },
        }),
      says: ["request.volumeMounts[0].mountPath 1: "],
    },
    {
      name: "a volume size that is no number, and a body that is no object",
      call: (client) =>
        client.updateApplication({
          appId: "a",
          request: { ...app, volumes: [{ name: "d", size: "1" as never }], containerTemplates: [7 as never] },
        }),
      says: ["request.volumes[0].size", "request.containerTemplates[0] 7: "],
    },
  ])("$name", async ({ call, says }, { platform, edge }) => {
    const thrown = await failure(call(edge.client));
    expect(thrown).toMatchObject({ code: "EDGE_INVALID_REQUEST", disposition: "give-up", status: null });
    for (const text of says) expect(thrown.mistakes.join("\n")).toContain(text);
    expect(thrown.mistakes).toHaveLength(says.length);
    expect(platform.requests).toHaveLength(0);
  });
});
