import { beforeEach, expect, test } from "vitest";
import { silences } from "#db/schema/alerts.ts";
import { auditEntries } from "#db/schema/people.ts";
import { NOW } from "#test/alerts/support.ts";
import { ask, askAll, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const clock = () => NOW;

beforeEach(() => world.alerts().clear());

function post(url: string, key: string, body: object, { status = 201, query = "" } = {}) {
  const init = { method: "POST", body: JSON.stringify(body), status };
  return ask(url, `/api/v1/silences${query}`, key, init);
}

const WANTED = { matchers: { zone: [101], rule: ["942*"] }, reason: "load test", durationMinutes: 120 };

test("a dry run says which alerts a silence would hold back, and writes nothing", async () => {
  await world.alerts().openSpike(0);
  await world.alerts().openSpike(0, { ruleId: "930100" });
  await world.alerts().runAt(0);
  const [alert] = (await world.alerts().alerts()).filter(({ ruleId }) => ruleId === "942100");
  const { url } = await world.start({ clock });
  const key = await world.key("operator");

  expect(await post(url, key, WANTED, { query: "?dryRun=true", status: 200 })).toEqual({
    id: null,
    startsAt: "2026-11-20T15:30:00.000Z",
    expiresAt: "2026-11-20T17:30:00.000Z",
    matchers: WANTED.matchers,
    reason: "load test",
    createdBy: "operator",
    alertIds: [alert?.id],
    equalIds: [],
  });
  expect(await world.database().db.$count(silences)).toBe(0);
});

test("a silence is made, listed, ended and audited under the key's name", async () => {
  let now = NOW;
  const { url } = await world.start({ clock: () => now });
  const key = await world.key("operator", { name: "bob" });
  const matchers = { ...WANTED.matchers, ip: ["198.51.100.0/24"], url: ["/login"] };
  const made = await post(url, key, { ...WANTED, matchers });
  const listed = await askAll(url, "/api/v1/silences", key, 10);
  const end = () => ask(url, `/api/v1/silences/${String(made["id"])}`, key, { method: "DELETE" });

  now += 1_000;
  expect(made).toMatchObject({ createdBy: "bob", alertIds: [] });
  expect(listed).toEqual([
    {
      id: made["id"],
      state: "active",
      startsAt: "2026-11-20T15:30:00.000Z",
      expiresAt: "2026-11-20T17:30:00.000Z",
      createdAt: expect.any(String),
      createdBy: "bob",
      reason: "load test",
      matchers,
      mutes: { count: 0, alerts: [] },
    },
  ]);
  expect(await end()).toMatchObject({ result: "expired" });
  expect(await end()).toMatchObject({ result: "over" });
  expect(await askAll(url, "/api/v1/silences", key, 10)).toEqual([]);
  expect(await askAll(url, "/api/v1/silences?state=expired", key, 10)).toHaveLength(1);
  const audit = await world.database().db.select().from(auditEntries);
  expect(audit.filter(({ subject }) => subject === `silence ${String(made["id"])}`)).toMatchObject([
    {
      action: "silence.added",
      actor: expect.stringMatching(/^key \w+ \(bob\)$/),
      details: { reason: "load test" },
    },
    { action: "silence.expired", actor: expect.stringMatching(/^key \w+ \(bob\)$/) },
  ]);
});

test("a key for one zone silences that zone alone, and sees no other's", async () => {
  const { url } = await world.start({ clock });
  const everywhere = await world.key("operator");
  const own = await world.key("operator", { zoneIds: [101] });
  const { id: both } = await post(url, everywhere, { ...WANTED, matchers: { zone: [101, 102] } });
  const { id: foreign } = await post(url, everywhere, { ...WANTED, matchers: { zone: [102] } });
  const { id: all } = await post(url, everywhere, { ...WANTED, matchers: { severity: ["info"] } });
  await post(url, own, WANTED);
  const seen = await askAll<{ id: number; matchers: { zone?: number[] } }>(url, "/api/v1/silences", own, 1);

  expect(seen.map(({ matchers }) => matchers.zone)).toEqual([[101], undefined, [101]]);
  for (const matchers of [{ zone: [102] }, { zone: [101, 102] }, { rule: ["942100"] }])
    await post(url, own, { ...WANTED, matchers }, { status: 403 });
  for (const [id, status] of [
    [both, 403],
    [all, 403],
    [foreign, 404],
  ] as const)
    await ask(url, `/api/v1/silences/${String(id)}`, own, { method: "DELETE", status });
});

test.each([
  ["no matcher", { matchers: {} }, 400, "matchers"],
  ["a matcher without values", { matchers: { zone: [] } }, 400, "matchers.zone"],
  ["a word that is no severity", { matchers: { severity: ["loud"] } }, 400, "matchers.severity[0]"],
  ["no reason", { reason: " " }, 400, "reason"],
  ["a reason of two lines", { reason: "one\ntwo" }, 400, "reason"],
  ["no end", { durationMinutes: undefined }, 422, "expiresAt"],
  ["no subject", { matchers: undefined }, 422, "matchers"],
  ["two subjects", { alerts: [1] }, 422, "alerts"],
  ["a scope without alerts", { scope: "rule" }, 422, "scope"],
  ["two ends", { expiresAt: "2026-11-21T00:00:00Z" }, 422, "expiresAt"],
  ["an end in the past", { durationMinutes: undefined, expiresAt: "2026-11-20T15:00:00Z" }, 422, "expiresAt"],
])("%s is refused by name", async (_what, change, status, field) => {
  const { url } = await world.start({ clock });
  const key = await world.key("operator");
  const problem = await post(url, key, { ...WANTED, ...change }, { status });

  expect(problem).toMatchObject({
    status,
    mistakes: expect.arrayContaining([expect.objectContaining({ field })]),
  });
  expect(await world.database().db.$count(silences)).toBe(0);
});

test("a silence lists what it mutes now, and its end is moved later, never earlier and not after it", async () => {
  let now = NOW + 60_000;
  await world.alerts().openSpike(0, { severity: "critical" });
  await world.alerts().openSpike(0, { ruleId: "942200" });
  await world.alerts().openSpike(0, { ruleId: "930100" });
  await world.alerts().runAt(0);
  const { url } = await world.start({ clock: () => now });
  const key = await world.key("operator", { name: "bob" });
  const made = await post(url, key, WANTED);
  const path = `/api/v1/silences/${String(made["id"])}`;
  const extend = (body: object, status = 200, who = key) =>
    ask(url, path, who, { method: "PATCH", body: JSON.stringify(body), status });

  expect(await ask(url, path, key)).toMatchObject({
    mutes: { count: 2, alerts: [{ severity: "critical", state: "firing" }, { severity: "warning" }] },
  });
  expect(await extend({ expiresAt: "2026-11-20T18:31:00Z" })).toMatchObject({
    expiresAt: "2026-11-20T18:31:00.000Z",
    mutes: { count: 2 },
  });
  expect(await extend({ durationMinutes: 5 }, 422)).toMatchObject({
    mistakes: [{ field: "expiresAt", rule: "must be later than the end that the silence has" }],
  });
  await extend({}, 422);
  await extend({ durationMinutes: 600 }, 403, await world.key("reader"));
  await extend({ durationMinutes: 600 }, 404, await world.key("operator", { zoneIds: [102] }));
  now = Date.parse("2026-11-20T18:31:00Z");
  expect(await extend({ durationMinutes: 600 }, 409)).toMatchObject({
    detail: `Silence ${String(made["id"])} has ended. Add a new one.`,
  });
  expect(await ask(url, path, key)).toMatchObject({ state: "expired", mutes: null });
  const audit = await world.database().db.select().from(auditEntries).orderBy(auditEntries.id);
  expect(audit.filter(({ action }) => action.startsWith("silence.")).slice(-2)).toMatchObject([
    { action: "silence.added" },
    { action: "silence.extended", details: { expiresAt: "2026-11-20T18:31:00.000Z" } },
  ]);
});
