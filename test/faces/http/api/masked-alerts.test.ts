import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import type { AlertDetail } from "#alerts/operations/alert-detail.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { channelConfig } from "#delivery/receivers/channels/registry.ts";
import { DeliveryError } from "#delivery/receivers/delivery-error.ts";
import { attackerOf, incidentOf } from "#test/alerts/incident.ts";
import { SERVICE } from "../default-service.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
beforeEach(() => world.alerts().clear());
afterEach(() => world.alerts().clear());

const KEY = "198.51.100.77";
const UA = "Mozilla/5.0 Chrome/121.0.0.0";
const INCIDENT = () =>
  incidentOf(
    attackerOf(KEY, 0),
    attackerOf("198.51.100.78", 1, { score: 6, role: "joined" }),
    attackerOf("t13d1516h2_8daaf6152771", 1, { kind: "ips_per_ja4", role: "apart" }),
    attackerOf(UA, 1, { kind: "ips_per_ua", role: "facet" }),
  );

test("a masked key sees no full address of an attacker, in the feed, in the list and in the details", async () => {
  const { url } = await world.start();
  const masked = await world.key("operator", { isMasked: true });
  const memberOf = await world.alerts().openSpike(0, INCIDENT());
  await world.alerts().openSpike(0, { ruleId: "1", memberOf });
  await world.alerts().runAt(1);
  const id = (await world.alerts().alerts()).find(({ kind }) => kind === "sources")?.id;
  const paths = [
    "alerts.atom",
    "alerts",
    `alerts/${id}`,
    `alerts/${id}?message=true`,
    `alerts/${id}/context`,
  ];
  const whole = await world.key("operator");
  for (const path of paths) {
    const text = await (await call(url, `/api/v1/${path}`, masked)).text();
    expect([path, text.replaceAll("198.51.100.*", "")]).toEqual([
      path,
      expect.not.stringMatching(/198\.51\.100\./),
    ]);
  }
  for (const path of paths.slice(0, 4))
    expect([path, await (await call(url, `/api/v1/${path}`, whole)).text()]).toEqual([
      path,
      expect.stringContaining(KEY),
    ]);
  const detail = await ask<AlertDetail>(url, `/api/v1/alerts/${id}`, masked);
  expect(detail.attackers.map(({ key, silence }) => [key, silence?.matchers ?? null])).toEqual([
    [UA, { zone: [101], ua: [UA] }],
    ["t13d1516h2_8daaf6152771", { zone: [101], ja4: ["t13d1516h2_8daaf6152771"] }],
    ["198.51.100.*", null],
    ["198.51.100.*", null],
  ]);
});

test("a masked key gets commands and matchers that silence what they name, everywhere the same", async () => {
  const { url } = await world.start();
  const masked = await world.key("operator", { isMasked: true });
  const read = async (spike: object, minute: number) => {
    await world.alerts().clear();
    await world.alerts().openSpike(minute, spike);
    await world.alerts().runAt(minute + 1);
    const id = (await world.alerts().alerts())[0]?.id;
    const detail = await ask<AlertDetail>(url, `/api/v1/alerts/${id}?message=true`, masked);
    const feed = await (await call(url, "/api/v1/alerts.atom", masked)).text();
    const [{ command, matchers } = { command: null, matchers: null }] = detail.silenceChoices;
    expect([detail.howToSilence, detail.message?.howToSilence]).toEqual([command, command]);
    expect(feed.replaceAll("&#39;", "'")).toContain(`Silence: ${command}`);
    return { command, matchers };
  };
  // A version that looks like an address must stay, or nothing would match.
  expect(await read(incidentOf(attackerOf(UA, 0, { kind: "ips_per_ua" })), 0)).toMatchObject({
    command: expect.stringContaining(`--ua='${UA}'`) as string,
    matchers: { zone: [101], ua: [UA] },
  });
  const ofAddress = await read(incidentOf(attackerOf(KEY, 0)), 0);
  expect(ofAddress.command).toMatch(/^longwatch silences add /);
  expect(JSON.stringify(ofAddress)).not.toMatch(/--ip|198\.51\.100|"ip"/);
});

test.each(["resolve", "silence"])("a masked key cannot try addresses of attackers: %s", async (act) => {
  const { url } = await world.start();
  await world.alerts().openSpike(0, INCIDENT());
  await world.alerts().runAt(1);
  const [alert] = await world.alerts().alerts();
  const tryKey = async (key: string, attacker: string) => {
    const body = { act, ids: [alert?.id], attacker, note: "test", durationMinutes: 5 };
    const { items } = await ask<{ items: { result: string; detail: string | null }[] }>(
      url,
      "/api/v1/alerts/act",
      key,
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
    );
    return items.map(({ result, detail }) => `${result} ${detail ?? ""}`);
  };
  const masked = await world.key("operator", { isMasked: true });
  const none = [expect.stringMatching(/^refused Alert \d+ has no such attacker/)];
  for (const key of [KEY, "198.51.100.1", `rules_per_ip=${KEY}`])
    expect(await tryKey(masked, key)).toEqual(none);
  expect(await tryKey(await world.key("operator"), "198.51.100.1")).toEqual(none);
  expect(await tryKey(await world.key("operator"), KEY)).toEqual(["done "]);
});

test("a masked key sees addresses of a silence masked, and cannot try or make one for an address", async () => {
  await world.database().pool.query(
    `insert into silences (starts_at, expires_at, created_by, reason, matchers)
     values (now() - interval '1 hour', now() + interval '1 hour', 'x', 'x', $1)`,
    [
      {
        ip: ["203.0.113.7"],
        asn: ["203.0.113.7"],
        country: ["203.0.113.7"],
        ja4: ["203.0.113.7"],
        ua: ["bot 203.0.113.7"],
        url: ["/u/203.0.113.7/*"],
      },
    ],
  );
  const { url } = await world.start();
  const masked = await world.key("operator", { isMasked: true });
  const list = await (await call(url, "/api/v1/silences", masked)).text();
  expect(list).toContain('"ua":["bot 203.0.113.*"],"url":["/u/203.0.113.*/*"]');
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

test("a preview shows the message of an alert with the channel's template or another, masked for a masked key", async () => {
  await world.alerts().openSpike(0, INCIDENT());
  await world.alerts().runAt(1);
  const id = (await world.alerts().alerts())[0]?.id;
  const chat = channelConfig.parse({
    kind: "discord",
    name: "chat",
    url: "https://chat.example/x",
    template: "Alert {{ alertId }}: {{ attackers[0].key }} {{ headline }}",
  });
  const alerting = () => ({ ...SERVICE.alerting(), channels: [chat] });
  const { url } = await world.start({ service: { ...SERVICE, alerting } });
  const [whole, masked] = [await world.key("reader"), await world.key("reader", { isMasked: true })];
  const show = (query: string, key = whole) =>
    ask<{ fault: string | null; messages: string[] }>(url, `/api/v1/channels/chat/preview?${query}`, key);

  const own = await show(`alert=${id}`);
  expect(own).toMatchObject({ kind: "discord", fault: null });
  expect(JSON.parse(own.messages[0] ?? "")).toMatchObject({
    embeds: [{ description: expect.stringContaining(`Alert ${id}: `) }],
  });
  expect(own.messages.join()).toContain(KEY);
  expect((await show(`alert=${id}`, masked)).messages.join()).not.toContain(KEY);
  const tried = await show(`alert=${id}&template=${encodeURIComponent("Look: {{ severity }}")}`);
  expect(tried.messages[0]).toContain("Look: ");
  const faulty = await show(`alert=${id}&template=${encodeURIComponent("a\n{{ severty }}")}`);
  expect(faulty.fault).toBe("no message has severty: did you mean severity?, line:2, col:4");
  expect(faulty.messages[0]).toContain("alerts ack");
  for (const path of ["chat/preview?alert=999999", "none/preview?alert=1"])
    expect((await call(url, `/api/v1/channels/${path}`, whole)).status).toBe(404);
});
