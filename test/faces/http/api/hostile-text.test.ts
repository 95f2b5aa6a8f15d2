import { eq } from "drizzle-orm";
import { beforeAll, expect, test } from "vitest";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { EVIDENCE } from "#test/alerts/support.ts";
import { issueKey } from "#test/support/issue-key.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";
import { HOSTILE } from "./hostile.ts";

const world = openApiWorld();
const ADVICE = "Requests came from 203.0.113.7 and 2001:db8:1:2::3, with Chrome/121.";

beforeAll(async () => {
  for (const text of HOSTILE)
    await world.alerts().openSpike(0, { ruleId: text, evidence: hostileEvidence(text) });
  await world.alerts().openSpike(0, { ruleId: "masked", zoneId: 103 });
  await world.alerts().runAt(0);
  const { db } = world.database();
  for (const row of await db.select().from(alerts)) {
    const { message } = row.details as { message: object };
    const text = row.ruleId ?? "";
    const advice = { state: "present", text: text === "masked" ? ADVICE : text, reason: null };
    const said = { ...message, headline: text, advice };
    await db
      .update(alerts)
      .set({ details: { message: said } })
      .where(eq(alerts.id, row.id));
  }
  await db.update(notifications).set({ lastError: HOSTILE.join("") });
});

function hostileEvidence(text: string) {
  const rows = [{ value: text, count: 1, share: 1 }];
  const top = { ip: rows, asn: rows, country: rows, path: rows, ua: rows, ja4: rows, action: rows };
  const at = new Date(0).toISOString();
  return { ...EVIDENCE, top, from: at, to: at, total: 1, sampled: 1, firstEventAt: null, lastEventAt: null };
}

interface Element {
  readonly name: string;
  readonly children: Element[];
  text: string;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** As much XML as the feed has; anything that is not well-formed throws. */
function parseXml(xml: string): Element {
  const root: Element = { name: "", children: [], text: "" };
  const open = [root];
  const body = xml.replace(/^<\?xml version="1.0" encoding="utf-8"\?>\n/, "");
  for (const [whole, tag, text] of body.matchAll(/<([^>]*)>|([^<]+)/g)) {
    const top = open.at(-1) ?? root;
    if (text !== undefined) {
      top.text += text.replace(/&(\w+|#39);|[&>]/g, (all, name: string | undefined) => {
        const known = name === undefined ? (all === ">" ? ">" : undefined) : ENTITIES[name];
        if (known === undefined) throw new Error(`not XML: ${whole}`);
        return known;
      });
      continue;
    }
    const parts = /^(\/?)([a-z]+)((?: [a-z]+="[^"<]*")*)(\/?)$/.exec(tag ?? "");
    if (parts === null) throw new Error(`not a tag of the feed: ${whole}`);
    const [, closes, name = "", , isEmpty] = parts;
    if (closes === "/") {
      if (open.pop()?.name !== name) throw new Error(`${name} closes what is not open`);
      continue;
    }
    const element = { name, children: [], text: "" };
    top.children.push(element);
    if (isEmpty !== "/") open.push(element);
  }
  if (open.length !== 1) throw new Error("something is not closed");
  return root.children[0] ?? root;
}

test("the Atom feed is well-formed for any alert text, and its ids are stable", async () => {
  const { url } = await world.start();
  const key = await world.key("reader");
  const response = await call(url, "/api/v1/alerts.atom?zone=101", key);
  const xml = await response.text();
  const feed = parseXml(xml);
  const entries = feed.children.filter(({ name }) => name === "entry");
  const childOf = (element: Element | undefined, name: string) =>
    element?.children.find((child) => child.name === name)?.text;

  expect(response.headers.get("content-type")).toBe("application/atom+xml; charset=utf-8");
  // oxlint-disable-next-line no-control-regex -- exactly these must not be in it
  expect(xml).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff\u202a-\u202e\u2066-\u2069]/);
  expect(entries).toHaveLength(HOSTILE.length);
  expect(childOf(feed, "updated")).toBe("2026-11-20T15:30:00.000Z");
  expect(childOf(feed, "id")).toMatch(/^tag:[0-9a-f]{16}\.longwatch\.invalid,2026:alerts$/);
  expect(new Set(entries.map((entry) => childOf(entry, "id"))).size).toBe(entries.length);
  for (const entry of entries)
    expect(entry.children.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["id", "title", "published", "updated", "link", "category", "content"]),
    );
  const other = await world.start();
  expect(await (await call(other.url, "/api/v1/alerts.atom?zone=101", key)).text()).toBe(xml);
  expect(response.headers.get("etag")).toBe(
    (await call(other.url, "/api/v1/alerts.atom?zone=101", key)).headers.get("etag"),
  );
});

test("JSON gives every text back as it was, and as nothing but JSON", async () => {
  const { url } = await world.start();
  const key = await world.key("reader");
  const response = await call(url, "/api/v1/alerts?limit=200&kind=spike&zone=101", key);
  const { items } = (await response.json()) as { items: { id: number; ruleId: string; headline: string }[] };

  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect(items.map(({ headline }) => headline).sort()).toEqual([...HOSTILE].sort());
  for (const { id, headline } of items) {
    expect(await ask(url, `/api/v1/alerts/${id}`, key)).toMatchObject({
      evidence: { paths: [{ value: headline }] },
      advice: { text: headline, source: "platform AI" },
    });
    const query = new URLSearchParams({ rule: headline });
    expect(await ask(url, `/api/v1/spikes?${query.toString()}`, key)).toMatchObject({
      items: [{ ruleId: headline }],
    });
  }
});

test("a masked key sees no full address, wherever evidence is shown", async () => {
  const { url } = await world.start();
  const wanted = { name: "tv", role: "reader", zoneIds: null, isMasked: true, expiresInMs: null } as const;
  const masked = (await issueKey(world.database(), wanted, "test")).key.reveal();
  const full = await world.key("reader");
  const { items } = await ask<{ items: { id: number }[] }>(url, "/api/v1/alerts?rule=masked", full);
  const paths = [`/api/v1/alerts/${items[0]?.id}`, "/api/v1/spikes?rule=masked", "/api/v1/alerts.atom"];
  for (const path of paths) {
    expect(await (await call(url, path, full)).text()).toContain("203.0.113.7");
    const text = await (await call(url, path, masked)).text();
    expect(text).not.toContain("203.0.113.7");
    expect(text).toContain("203.0.113.*");
  }
  const { advice } = await ask<{ advice: { text: string } }>(url, paths[0] ?? "", masked);
  expect(advice.text).toBe("Requests came from 203.0.113.* and 2001:db8:1::*, with Chrome/121.");
});
