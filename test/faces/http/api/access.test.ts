import { beforeAll, expect, test } from "vitest";
import { alerts, silences } from "#db/schema/alerts.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { notifications } from "#db/schema/notifications.ts";
import { ruleBuckets } from "#db/schema/rules.ts";
import { insertSpike } from "#test/alerts/insert-spike.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const HOUR = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000);
/** No time has such numbers in it. */
const OWN = 10_117;
const FOREIGN = 90_210;
/** Part of every text of the foreign zone: no other key may ever read it. */
const SECRET = "canary-of-the-zone";
const ids = {
  own: 0,
  foreign: 0,
  ownSpike: 0,
  foreignSpike: 0,
  foreignDelivery: 0,
  ownDelivery: 0,
  foreignSilence: 0,
};

beforeAll(async () => {
  const { db } = world.database();
  for (const [zoneId, ruleId] of [
    [OWN, "own-rule"],
    [FOREIGN, SECRET],
  ] as const) {
    const spikeId = await insertSpike(db, { zoneId, ruleId, openedAt: HOUR });
    const [alert] = await db
      .insert(alerts)
      .values({
        zoneId,
        ruleId,
        spikeId,
        firedAt: HOUR,
        kind: "spike",
        fingerprint: ruleId,
        transitions: [{ transition: 1, at: HOUR.getTime(), reason: "first", state: "firing" }],
        details: { message: { headline: ruleId } },
      })
      .returning({ id: alerts.id });
    const alertId = alert?.id ?? 0;
    const [sent] = await db
      .insert(notifications)
      .values({
        alertId,
        transition: 1,
        reason: "first",
        channel: "chat",
        dedupeKey: ruleId,
        state: "undeliverable",
        lastError: ruleId,
        content: { headline: ruleId },
      })
      .returning({ id: notifications.id });
    const [silence] = await db
      .insert(silences)
      .values({
        startsAt: HOUR,
        expiresAt: new Date(Date.now() + 3_600_000),
        createdBy: ruleId,
        reason: ruleId,
        matchers: { zone: [zoneId] },
      })
      .returning({ id: silences.id });
    await db.insert(coverageWindows).values({ zoneId, startsAt: HOUR, state: "gap", gapReason: ruleId });
    for (const width of [60, 3_600])
      await db.insert(ruleBuckets).values({ zoneId, ruleId, width, startsAt: HOUR, total: 1, blocked: 1 });
    if (zoneId === OWN) Object.assign(ids, { own: alertId, ownSpike: spikeId, ownDelivery: sent?.id });
    else
      Object.assign(ids, {
        foreign: alertId,
        foreignSpike: spikeId,
        foreignDelivery: sent?.id,
        foreignSilence: silence?.id,
      });
  }
  // Alerts of no zone, such as an alert about Longwatch itself.
  await db.insert(alerts).values({
    firedAt: HOUR,
    kind: "self",
    fingerprint: "self",
    transitions: [{ transition: 1, at: HOUR.getTime(), reason: "first", state: "firing" }],
    details: { message: { headline: SECRET } },
  });
});

const LISTS = [
  "alerts",
  "alerts.atom",
  "silences",
  "rules",
  "spikes",
  "coverage",
  "gaps",
  "deliveries",
  "zones",
  "status",
];

test("a key for one zone reads nothing of another zone in any list", async () => {
  const { url } = await world.start();
  const [ofOne, ofAll] = [await world.key("reader", { zoneIds: [OWN] }), await world.key("reader")];
  for (const list of LISTS) {
    const [own, all] = [await call(url, `/api/v1/${list}`, ofOne), await call(url, `/api/v1/${list}`, ofAll)];
    const [ownText, allText] = [await own.text(), await all.text()];
    expect([list, own.status, all.status]).toEqual([list, 200, 200]);
    const shown = [
      /10117|own-rule/.test(ownText),
      ...[ownText, allText].map((text) => /canary|90210/.test(text)),
    ];
    expect([list, ...shown]).toEqual([list, true, false, true]);
  }
});

test("S3: by number or by name, what is of another zone is not there for such a key", async () => {
  const { url } = await world.start();
  const key = await world.key("operator", { zoneIds: [OWN] });
  const missing: [string, string][] = [
    ["GET", `alerts/${ids.foreign}`],
    ["POST", `alerts/${ids.foreign}/ack`],
    ["POST", `alerts/${ids.foreign}/resolve`],
    ["GET", `spikes/${ids.foreignSpike}`],
    ["POST", `deliveries/${ids.foreignDelivery}/replay`],
    ["DELETE", `silences/${ids.foreignSilence}`],
  ];
  for (const [method, path] of missing) {
    const problem = await ask(url, `/api/v1/${path}`, key, { method, status: 404 });
    expect(JSON.stringify(problem)).not.toContain("canary");
  }
  for (const path of LISTS.filter((one) => !["silences", "zones", "status"].includes(one)))
    await ask(url, `/api/v1/${path}?zone=${FOREIGN}`, key, { status: 403 });
  await ask(url, `/api/v1/trends?zone=${FOREIGN}`, key, { status: 403 });
  await ask(url, `/api/v1/alerts/stream?zone=${FOREIGN}`, key, { status: 403 });
  expect(await world.database().db.select({ state: alerts.state }).from(alerts)).toEqual([
    { state: "firing" },
    { state: "firing" },
    { state: "firing" },
  ]);
});

interface Operation {
  readonly "x-scope": string;
  readonly security: readonly unknown[];
}

test("S3: every documented route admits exactly the keys with its scope", async () => {
  const { url } = await world.start();
  const { paths } = await ask<{ paths: Record<string, Record<string, Operation>> }>(url, "/openapi.json");
  // Each role has the scopes of those before it (http/access.test.ts), so two roles show where a route's line is.
  const scopes = ["public", "feed", "read", "export", "act", "admin"];
  const roles = ["feed", "reader", "exporter", "operator", "admin"] as const;
  const keys = await Promise.all(roles.map((role) => world.key(role)));
  const wrong: string[] = [];
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { "x-scope": scope, security }] of Object.entries(operations)) {
      // An id that does not exist: an admitted caller is answered, and nothing is changed.
      const address = path.replace(/\{\w+\}/g, "999999999");
      const init = { method: method.toUpperCase(), ...(method === "post" ? { body: "{" } : {}) };
      const keyless = await call(url, address, undefined, init);
      if ((keyless.status === 401) !== (scope !== "public")) wrong.push(`${method} ${path} without a key`);
      if ((security.length === 0) !== (scope === "public")) wrong.push(`${method} ${path} says no security`);
      await keyless.body?.cancel();
      const least = Math.max(0, scopes.indexOf(scope) - 1);
      for (const at of scope === "public" ? [0] : [least - 1, least].filter((one) => one >= 0)) {
        const answer = await call(url, address, keys[at], init);
        const isAllowed = at >= least;
        if ((answer.status !== 403) !== isAllowed)
          wrong.push(`${roles[at]} ${method} ${path}: ${answer.status}`);
        await answer.body?.cancel();
      }
    }
  }
  expect(wrong).toEqual([]);
});

test("a delivery that is dead is sent again once, and the act is audited", async () => {
  const { url } = await world.start();
  const key = await world.key("operator", { zoneIds: [OWN] });
  const replay = (status: number) =>
    ask(url, `/api/v1/deliveries/${ids.ownDelivery}/replay`, key, { method: "POST", status });

  expect(await replay(200)).toEqual({ id: ids.ownDelivery, replayed: 1 });
  expect(await replay(409)).toMatchObject({ type: "urn:longwatch:problem:delivery-not-dead" });
  const { items } = await ask<{ items: unknown[] }>(url, `/api/v1/deliveries?alert=${ids.own}`, key);
  expect(items).toMatchObject([{ state: "pending", channel: "chat" }]);
  const audit = await world
    .database()
    .pool.query("select subject from audit_entries where action = 'delivery.replayed'");
  expect(audit.rows).toEqual([{ subject: `delivery ${ids.ownDelivery}` }]);
});
