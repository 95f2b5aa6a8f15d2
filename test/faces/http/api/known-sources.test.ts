import { expect, test } from "vitest";
import { auditEntries } from "#db/schema/people.ts";
import type { KnownSource } from "#model/known-source.ts";
import { NOW } from "#test/alerts/support.ts";
import { SERVICE } from "../default-service.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const PATH = "/api/v1/known-sources";

interface Item {
  readonly id: number;
  readonly pattern: string;
}

test("a known source is added, listed and removed over the API, with an audit entry that hides the address", async () => {
  await world.database().pool.query("delete from known_sources");
  const { url } = await world.start({ clock: () => NOW });
  const everywhere = await world.key("operator", { name: "ann" });
  const own = await world.key("operator", { zoneIds: [101] });
  const post = (key: string, body: object, status = 201) =>
    ask<Item>(url, PATH, key, { method: "POST", body: JSON.stringify(body), status });
  const list = async (key: string) => (await ask<{ items: Item[] }>(url, PATH, key)).items;
  const until = "2026-12-31T00:00:00.000Z";
  const wanted = { kind: "ip", pattern: "198.51.100.7", reason: "our scanner", until };

  const added = await post(everywhere, wanted);
  const foreign = await post(everywhere, { kind: "ua", pattern: "Pingdom*", zone: 102, reason: "monitor" });
  expect(await list(everywhere)).toMatchObject([
    { ...wanted, id: added.id, zoneIds: null, createdBy: "ann" },
    { id: foreign.id, zoneIds: [102], until: null },
  ]);
  const masked = await world.key("reader", { isMasked: true });
  expect((await list(masked))[0]?.pattern).not.toContain("198.51.100.7");

  // A key for one zone sees what holds there, and changes nothing of other zones.
  expect((await list(own)).map(({ id }) => id)).toEqual([added.id]);
  await post(own, wanted, 403);
  await post(own, { ...wanted, zone: 102 }, 403);
  const { id } = await post(own, { ...wanted, zone: 101 });
  const remove = (key: string, which: number, status = 200) =>
    ask(url, `${PATH}/${which}`, key, { method: "DELETE", status });
  await remove(own, added.id, 403);
  await remove(own, foreign.id, 404);
  await remove(await world.key("reader"), id, 403);
  expect(await remove(own, id)).toEqual({ id, result: "removed" });
  await remove(own, id, 404);

  await post(everywhere, { ...wanted, pattern: "not an address" }, 400);
  await post(everywhere, { ...wanted, pattern: "3325256711" }, 400);
  const maskedOperator = await world.key("operator", { isMasked: true });
  for (const pattern of ["198.51.100.7", "198.51.100.0/24", "2001:db8::1"])
    await post(maskedOperator, { ...wanted, pattern }, 422);
  await post(maskedOperator, { ...wanted, kind: "ua", pattern: "scanner 198[.]51[.]100[.]7" }, 422);
  await post(maskedOperator, { kind: "ua", pattern: "Uptime*", reason: "monitor" });
  await post(everywhere, { ...wanted, until: "2026-01-01T00:00:00Z" }, 422);
  const audit = (await world.database().db.select().from(auditEntries)).filter(
    ({ subject }) => subject === `known source ${id}`,
  );
  expect(audit.map(({ action, actor }) => [action, /^key \w+ \(operator\)$/.test(actor)])).toEqual([
    ["known-source.added", true],
    ["known-source.removed", true],
  ]);
  expect(JSON.stringify(audit)).not.toContain("198.51.100.7");
});

test("a known source beyond 500 of one zone is refused, also if several are added at once", async () => {
  const { url } = await world.start({ clock: () => NOW });
  const key = await world.key("operator", { zoneIds: [101] });
  await world.database().pool.query(
    `delete from known_sources; insert into known_sources (zone_id, kind, pattern, reason, created_by)
     select 101, 'ip', '198.51.100.' || i, 'many', 'a test' from generate_series(0, 497) i`,
  );
  const post = (i: number) =>
    fetch(`${url}${PATH}`, {
      method: "POST",
      headers: { AccessKey: key, "content-type": "application/json" },
      body: JSON.stringify({ ip: `203.0.113.${i}`, zone: 101, reason: "one more" }),
    });
  const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => post(i)));
  const refused = answers.filter(({ status }) => status === 422);
  expect(refused).toHaveLength(4);
  expect(await refused[0]?.json()).toMatchObject({
    mistakes: [
      { field: "pattern", rule: expect.stringContaining("at most 500 known sources in zone 101") as string },
    ],
  });
});

test("what has ended and the same source again count for no limit, and what the file has counts", async () => {
  const fromFile = Array.from({ length: 300 }, (_, i): KnownSource => {
    return { kind: "ua", pattern: `file ${i}`, zoneIds: [101], reason: "many", untilMs: null };
  });
  const service = {
    ...SERVICE,
    alerting: () => {
      const alerting = SERVICE.alerting();
      return { ...alerting, detection: { ...alerting.detection, knownSources: fromFile } };
    },
  };
  const { url } = await world.start({ clock: () => NOW, service });
  const key = await world.key("operator");
  const { pool } = world.database();
  await pool.query("delete from known_sources");
  await pool.query(
    `insert into known_sources (zone_id, kind, pattern, reason, created_by, expires_at)
     select 101, 'ua', 'stored ' || i, 'many', 'a test', case when i < 199 then null else $1::timestamptz end
     from generate_series(0, 3000) i`,
    [new Date(NOW)],
  );
  const count = () => pool.query("select from known_sources").then(({ rowCount }) => rowCount);
  const post = (ua: string, more: object = {}, status = 201) =>
    ask<{ id: number; mistakes: { rule: string }[] }>(url, PATH, key, {
      method: "POST",
      body: JSON.stringify({ ua, reason: "one more", zone: 101, ...more }),
      status,
    });
  const first = await post("last");
  expect(await count()).toBe(200);
  const again = await post("last", { until: new Date(NOW + 60_000).toISOString() });
  expect(again.id).not.toBe(first.id);
  expect(await count()).toBe(200);
  const audit = (await world.database().db.select().from(auditEntries)).find(
    ({ subject }) => subject === `known source ${again.id}`,
  );
  expect(audit?.details).toMatchObject({ replaces: String(first.id) });

  for (const zone of [101, undefined]) {
    const refused = await post("one too many", { zone }, 422);
    expect(refused.mistakes[0]?.rule).toMatch(
      /^must be at most 500 known sources in zone 101, .* there are 501,/,
    );
  }
  await post("one too many", { zone: 102 });
  // It is the same as one of the file for the zone.
  await post("file 7", { zone: undefined });
  expect(await count()).toBe(202);
});
