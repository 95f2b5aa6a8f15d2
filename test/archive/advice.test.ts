import { beforeEach, expect, it } from "vitest";
import { createEmulator } from "#emulator/emulator.ts";
import { createAskAdvice } from "#jobs/alerts/fetch-advice.ts";
import { createSecret } from "#lib/secret.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { atEnd } from "#test/support/at-end.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { makeKey } from "../faces/http/start-archive.ts";
import { createClient, NOW, serve } from "./support.ts";

const PATH = "/shield/waf/rules/review-triggered/ai-recommendation/101/930130";

const emulator = await createEmulator({ clock: () => NOW, eventsPerSecond: 0.1, historyHours: 2 });
const database = await createMigratedDatabase();
atEnd(async () => {
  await emulator.close();
  await database.drop();
});
const transport = createEdgeTransport({
  baseUrl: emulator.url,
  accessKey: createSecret(emulator.accessKey),
  sleep: async () => undefined,
});
atEnd(() => transport.close());
const edge = createEdgeClient(transport);

/** The archive's HTTP, which may ask the platform so many times in an hour. */
async function openAdvice(budgetPerHour = 30) {
  const askAdvice = createAskAdvice({ database, edge, clock: () => emulator.now(), budgetPerHour });
  return serve(database, emulator, { askAdvice });
}

const { http, ask, platform } = await openAdvice();
const countAsks = () => emulator.requests().counts["recommend-rule"] ?? 0;
let asksBefore = 0;
const asked = () => countAsks() - asksBefore;

beforeEach(async () => {
  await database.pool.query("delete from advice");
  emulator.setNow(NOW);
  emulator.clearFaults();
  emulator.setSwitches({ advice: "ok", adviceLatencyMs: 0 });
  asksBefore = countAsks();
});

it("asks the platform once and then answers what it stored, byte for byte", async () => {
  const theirs = await platform(PATH);
  const first = await ask(PATH);
  expect([first.status, first.type, first.text]).toEqual([theirs.status, theirs.type, theirs.text]);
  const before = asked();
  expect((await ask(PATH)).text).toBe(theirs.text);
  expect(asked()).toBe(before);
  expect(first.headers.get("x-longwatch-asked-at")).toBe("2026-11-20T15:30:00.000Z");
});

it("answers unknown rules and what the plan does not allow as the platform does", async () => {
  for (const [advice, path] of [
    ["ok", PATH.replace("930130", "000000")],
    ["ok", PATH.replace("101", "999")],
    ["ok", PATH.replace("101", "zone")],
    ["not-enough-data", PATH.replace("930130", "942100")],
    ["model-failure", PATH.replace("930130", "941100")],
    ["null-text", PATH.replace("930130", "913100")],
    ["limit-reached", PATH.replace("930130", "920350")],
  ] as const) {
    emulator.setSwitches({ advice });
    const theirs = await platform(path);
    for (const ours of [await ask(path), await ask(path)])
      expect(`${ours.status} ${ours.type} ${ours.text}`).toBe(
        `${theirs.status} ${theirs.type} ${theirs.text}`,
      );
  }
});

it("shows stored advice to a key that may only read, and does not ask the platform", async () => {
  const { key } = await makeKey(database, "reader");
  const reader = createClient(http.url, key);
  const none = await reader(PATH);
  expect(none.status).toBe(202);
  expect(JSON.parse(none.text)).toMatchObject({
    success: false,
    recommendation: null,
    errorResponse: { errorKey: "not_found.ai_recommendation" },
  });
  expect(asked()).toBe(0);
  const stored = await ask(PATH);
  expect((await reader(PATH)).text).toBe(stored.text);
});

it("S3: masks the addresses in the text for a masked key", async () => {
  const { key } = await makeKey(database, "reader", { isMasked: true });
  const masked = createClient(http.url, key);
  const full = (await ask(PATH)).text;
  const address = /\b(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}\b/.exec(full);

  const shown = (await masked(PATH)).text;
  expect(shown).not.toContain(address?.[0]);
  expect(shown).toContain(`${address?.[1]}.*`);
});

it("stays within the budget, and shows an old answer while the platform may not be asked", async () => {
  const poor = await openAdvice(1);
  const first = await poor.ask(PATH);
  expect(first.status).toBe(200);
  expect((await poor.ask(PATH.replace("930130", "942100"))).status).toBe(202);
  expect(asked()).toBe(1);
  emulator.advance(7 * HOUR_MS);
  const { key } = await makeKey(database, "reader");
  expect((await createClient(poor.http.url, key)(PATH)).text).toBe(first.text);
  expect(asked()).toBe(1);
  await poor.ask(PATH);
  expect(asked()).toBe(2);
});

it("asks once for many that want to know at the same time", async () => {
  emulator.setSwitches({ adviceLatencyMs: 200 });
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(PATH)));
  expect(asked()).toBe(1);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect((await ask(PATH)).status).toBe(200);
});

it("says so in the platform's form when the platform fails", async () => {
  emulator.addFault({ kind: "status", status: 503, operation: "recommend-rule" });
  const answer = await ask(PATH);
  expect(answer.status).toBe(202);
  expect(JSON.parse(answer.text)).toMatchObject({
    success: false,
    errorResponse: { statusCode: 202, errorKey: "not_available.ai_recommendation" },
  });
});

it("S3: never shows a zone the advice of another zone on the same rule", async () => {
  const ours = (await ask(PATH)).text;
  await database.pool.query(`insert into advice
    select (jsonb_populate_record(a, jsonb_build_object('zone_id', 102, 'text', 'canary',
      'asked_at', a.asked_at + interval '1 minute'))).* from advice a where zone_id = 101`);
  expect((await ask(PATH)).text).toBe(ours);

  await database.pool.query("delete from advice where zone_id = 101");
  emulator.setSwitches({ advice: "not-enough-data" });
  expect((await ask(PATH)).text).not.toContain("canary");
});
