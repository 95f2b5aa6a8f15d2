import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { DEFAULT_TIMING, routeToAll } from "#stages/alerting/routing/routing.ts";
import { DeliveryError } from "#stages/delivery/delivery-error.ts";
import type { Notifier } from "#stages/delivery/notifier.ts";
import { SERVICE } from "../default-service.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
beforeEach(() => world.alerts().clear());
afterEach(() => world.alerts().clear());

const FINDING = {
  kind: "rules_per_ip" as const,
  key: "198.51.100.77",
  members: 40,
  usualMembers: 3,
  windowMinutes: 15 as const,
  count: 40,
  usual: 1,
  threshold: 15,
  score: 13,
  since: 1,
};
const SOURCES = {
  ruleId: "(sources)",
  kind: "sources" as const,
  severity: "critical" as const,
  sources: {
    kind: "rules_per_ip" as const,
    findings: [FINDING, { ...FINDING, key: "198.51.100.78", score: 5 }],
    grown: [],
    rules: [],
    events: 80,
    isMasked: false,
  },
};

test("the feed shows a masked key no full address of an alert about sources, alone or in a flood", async () => {
  const { url } = await world.start();
  const masked = await world.key("reader", { isMasked: true });
  const readFeed = async () => (await call(url, "/api/v1/alerts.atom", masked)).text();
  await world.alerts().openSpike(0, SOURCES);
  await world.alerts().runAt(0);
  expect(await readFeed()).toContain("198.51.100.*");
  expect(await readFeed()).not.toMatch(/198\.51\.100\.\d/);
  await world.alerts().clear();
  for (const ruleId of ["1", "2", "3", "4", "5"]) await world.alerts().openSpike(0, { ruleId });
  await world.alerts().openSpike(0, SOURCES);
  await world.alerts().runAt(0);
  expect(await readFeed()).toContain("198.51.100.*");
  expect(await readFeed()).not.toMatch(/198\.51\.100\.\d/);
});

test("a key for one zone does not see a flood that has spread to another zone", async () => {
  const all = routeToAll(["chat"]);
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0, groupIntervalMs: 60_000, groupBy: [] };
  const routing = () => ({ ...all, root: { ...all.root, timing } });
  const { url } = await world.start();
  const key = await world.key("reader", { zoneIds: [101] });
  const readKinds = async () => {
    const { items } = await ask<{ items: { kind: string }[] }>(url, "/api/v1/alerts", key);
    return items.map(({ kind }) => kind);
  };
  for (const ruleId of ["1", "2", "3", "4", "5"]) await world.alerts().openSpike(0, { ruleId, zoneId: 101 });
  await world.alerts().runAt(1, { routing, zoneIds: [101, 102] });
  expect(await readKinds()).toContain("group");
  await world.alerts().openSpike(3, { ruleId: "6", zoneId: 102 });
  for (const minutes of [4, 10]) await world.alerts().runAt(minutes, { routing, zoneIds: [101, 102] });
  const kinds = await readKinds();
  expect(kinds).toContain("spike");
  expect(kinds).not.toContain("group");
});

test("a masked key sees addresses of a silence masked, and cannot try or make one for an address", async () => {
  await world.database().pool.query(
    `insert into silences (starts_at, expires_at, created_by, reason, matchers)
     values (now() - interval '1 hour', now() + interval '1 hour', 'x', 'x', '{"ip":["203.0.113.7"]}')`,
  );
  const { url } = await world.start();
  const masked = await world.key("operator", { isMasked: true });
  const list = await (await call(url, "/api/v1/silences", masked)).text();
  expect(list).toContain("203.0.113.*");
  expect(list).not.toContain("203.0.113.7");
  const post = (path: string, body: object) =>
    call(url, path, masked, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ matchers: { ip: ["203.0.113.7"] }, ...body }),
    });
  expect((await post("/api/v1/silences/preview", {})).status).toBe(422);
  const silence = { reason: "test", durationMinutes: 5 };
  expect((await post("/api/v1/silences?dryRun=true", silence)).status).toBe(422);
});

test("the preview of a silence by address counts the alerts whose events come from there", async () => {
  await world.alerts().openSpike(0, { ruleId: "1" });
  await world.alerts().runAt(0);
  const { url } = await world.start();
  const reader = await world.key("reader");
  const count = async (ip: string) => {
    const answer = await ask<{ now: { count: number } }>(url, "/api/v1/silences/preview", reader, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ matchers: { ip: [ip] } }),
    });
    return answer.now.count;
  };
  expect(await count("203.0.113.7")).toBe(1);
  expect(await count("203.0.113.8")).toBe(0);
});

test("a masked key sees addresses in the failure of a channel masked, in every answer that has it", async () => {
  const { pool } = world.database();
  const lastError = "status 403: client 203.0.113.7 is not allowed";
  await pool.query("insert into channel_states (channel, last_error) values ('chat', $1)", [lastError]);
  onTestFinished(async () => void (await pool.query("delete from channel_states")));
  const chat = {
    name: "chat",
    kind: "webhook",
    capabilities: { laterTransitions: "post-anew", rate: { perMinute: 60, digest: null } },
    send: async () => {
      throw new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text: lastError });
    },
  } as unknown as Notifier;
  const { url } = await world.start({ service: { ...SERVICE, notifiers: new Map([["chat", chat]]) } });
  const readAll = async (key: string) => {
    const status = await ask<{ channels: unknown[] }>(url, "/api/v1/status", key);
    const list = await ask<{ items: unknown[] }>(url, "/api/v1/channels", key);
    const tested = await ask(url, "/api/v1/channels/chat/test", key, { method: "POST" });
    return [status.channels, list.items, tested].map((answer) => JSON.stringify(answer));
  };

  const [whole, masked] = [
    await readAll(await world.key("operator")),
    await readAll(await world.key("operator", { isMasked: true })),
  ];

  for (const answer of whole) expect(answer).toContain("client 203.0.113.7 is");
  for (const answer of masked) expect(answer).toContain("client 203.0.113.* is");
});
