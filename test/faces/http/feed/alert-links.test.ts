import pino from "pino";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { type LinkRule, type Routing, routeToAll } from "#alerts/rules/routing/routing.ts";
import { createReportServiceJob } from "#jobs/alerts/report-service.ts";
import { at } from "#test/alerts/alert-world.ts";
import { attackerOf, incidentOf } from "#test/alerts/incident.ts";
import { resolveAlert } from "#test/operations/act-by-hand.ts";
import { ask, openApiWorld } from "../api/api-world.ts";
import { call } from "../start-archive.ts";

const LINKS: readonly LinkRule[] = [
  { title: "Runbook <SQLi>", url: "https://wiki.example/sqli", matchers: { rule: ["942*"] } },
  { title: "Zone & rule", url: "https://g.example/d?zone={zone}&rule={rule}&to={to_ms}", matchers: {} },
  { title: "Longwatch", url: "https://wiki.example/longwatch/{zone}", matchers: { kind: ["self"] } },
  { title: "Zone", url: "https://wiki.example/zones/{zone}", matchers: { zone: [101] } },
];

const world = openApiWorld();
const linking = (links: readonly LinkRule[] = LINKS, over: Partial<Routing> = {}) => ({
  routing: () => ({ ...routeToAll(["chat"]), links, ...over }),
});
let alerts: ReturnType<typeof world.alerts>;
beforeAll(() => {
  alerts = world.alerts();
});
beforeEach(() => alerts.clear());

/** Returns the links of each message in the outbox, as `transition reason: titles`. */
async function told(): Promise<string[]> {
  return (await alerts.messages()).map(({ message: { transition, reason, links } }) => {
    return `${transition} ${reason}: ${links.map(({ title }) => title).join(", ")}`;
  });
}

test("an alert's messages have its links, filled in for each transition, also when a person resolves it", async () => {
  const first = await alerts.openSpike(0);
  await alerts.runAt(1, linking());
  await alerts.closeSpike(first, 20);
  await alerts.runAt(21, linking());
  await alerts.openSpike(200, { ruleId: "a&b/../c" });
  await alerts.runAt(201, linking());
  const [, row] = await alerts.alerts();
  const act = { alertId: row?.id ?? 0, by: "alice", note: null, atMs: at(202).getTime() };
  await resolveAlert(world.database(), act);
  expect(await told()).toEqual([
    "1 first: Runbook <SQLi>, Zone & rule, Zone",
    "2 resolved: Runbook <SQLi>, Zone & rule, Zone",
    "1 first: Zone & rule, Zone",
    "2 resolved: Zone & rule, Zone",
  ]);
  const messages = (await alerts.messages()).map(({ message }) => message.links.map(({ url }) => url));
  expect(messages[0]?.[1]).toBe(`https://g.example/d?zone=101&rule=942100&to=${at(1).getTime()}`);
  expect(messages[1]?.[1]).toBe(`https://g.example/d?zone=101&rule=942100&to=${at(20).getTime()}`);
  expect(messages[2]?.[0]).toBe(`https://g.example/d?zone=101&rule=a%26b%2F..%2Fc&to=${at(201).getTime()}`);
});

test("without configured links messages have none, and a changed file applies to later messages", async () => {
  await alerts.openSpike(0);
  await alerts.runAt(1, linking([]));
  await alerts.runAt(242, linking());
  expect(await told()).toEqual(["1 first: ", "2 repeat: Runbook <SQLi>, Zone & rule, Zone"]);
});

test("an incident has the links for all of its rules, and each rule's own alert its own", async () => {
  const memberOf = await alerts.openSpike(0, incidentOf(attackerOf("203.0.113.9")));
  for (let index = 0; index < 6; index += 1) await alerts.openSpike(0, { ruleId: `94210${index}`, memberOf });
  await alerts.runAt(1, linking());
  expect(await told()).toEqual(["1 first: Runbook <SQLi>, Zone"]);
  const muted = (await alerts.alerts()).filter(({ kind }) => kind !== "sources");
  expect(muted).toHaveLength(6);
  for (const { ruleId, details } of muted)
    expect((details as { message: unknown }).message).toMatchObject({
      links: [
        { title: "Runbook <SQLi>" },
        { url: expect.stringContaining(`rule=${ruleId}`) },
        { title: "Zone" },
      ],
    });
});

test("alerts about Longwatch itself have the links that need no rule", async () => {
  let nowMs = at(0).getTime();
  const job = createReportServiceJob({
    database: world.database(),
    clock: () => nowMs,
    log: pino({ level: "silent" }),
    zoneIds: [101],
    pollEveryMs: 30_000,
    ...linking(),
    afterAlerts: async () => undefined,
  });
  for (let minute = 0; minute < 23; minute += 1) {
    await job.run({} as never, new AbortController().signal);
    nowMs += 60_000;
  }
  expect(await told()).toEqual(["1 first: Longwatch, Zone"]);
  const [quiet] = await alerts.messages();
  expect(quiet?.message.links[0]?.url).toBe("https://wiki.example/longwatch/101");
});

test("the API's items and the Atom feed have them, escaped", async () => {
  await alerts.openSpike(0);
  await alerts.runAt(1, linking());
  const { url } = await world.start();
  const key = await world.key("reader");
  const to = at(1).getTime();
  const links = [
    { title: "Runbook <SQLi>", url: "https://wiki.example/sqli" },
    { title: "Zone & rule", url: `https://g.example/d?zone=101&rule=942100&to=${to}` },
    { title: "Zone", url: "https://wiki.example/zones/101" },
  ];
  const { items } = await ask<{ items: { id: number; links: unknown }[] }>(url, "/api/v1/alerts", key);
  expect(items.map((item) => item.links)).toEqual([links]);
  expect(await ask(url, `/api/v1/alerts/${items[0]?.id}`, key)).toMatchObject({ links });
  const xml = await (await call(url, "/api/v1/alerts.atom", key)).text();
  expect(xml.match(/ *<link rel="related".*/g)).toEqual([
    '    <link rel="related" href="https://wiki.example/sqli" title="Runbook &lt;SQLi&gt;"/>',
    `    <link rel="related" href="https://g.example/d?zone=101&amp;rule=942100&amp;to=${to}" title="Zone &amp; rule"/>`,
    '    <link rel="related" href="https://wiki.example/zones/101" title="Zone"/>',
  ]);
});
