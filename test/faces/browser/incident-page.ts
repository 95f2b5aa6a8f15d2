import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { attackerOf, incidentOf } from "../../alerts/incident.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { EVIDENCE, NOW } from "../../alerts/support.ts";
import { settle } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";
import type { Visit } from "./pages.ts";

/** Hostile text of a request, as every key may be. */
const AGENT = '<img src=x onerror="alert(1)">\u202e scanner';
const SINCE_MINUTES = 10;

/** The tests of an incident's page. */
export function testIncidentPage(visit: Visit, openWorld: () => BrowserWorld): void {
  beforeAll(async () => {
    const { db } = openWorld().running.database;
    // The end of a minute that is over: the detector has nothing to add to it, and the evidence stays.
    const at = new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS);
    const now = Math.floor((at.getTime() - NOW) / MINUTE_MS);
    const since = now - SINCE_MINUTES;
    // Without an address that silences of other tests match.
    const [from, to] = [at.toISOString(), at.toISOString()];
    const counted = { from, to, total: 50, sampled: 50, firstEventAt: null, lastEventAt: null };
    const evidence = { ...EVIDENCE, ...counted, top: { ...EVIDENCE.top, ip: [] } };
    const memberOf = await insertSpike(db, {
      ...incidentOf(
        attackerOf("203.0.113.9", since, { lastMinutes: now }),
        attackerOf("198.51.100.23", since + 4, { lastMinutes: now, role: "joined", score: 8 }),
        attackerOf(AGENT, since + 5, { kind: "ips_per_ua", lastMinutes: now, role: "apart" }),
        attackerOf("198.51.100.77", since + 6, { lastMinutes: now, role: "joined" }),
        attackerOf("192.0.2.200", since - 60, { lastMinutes: since - 50 }),
      ),
      zoneId: 102,
      evidence,
      openedAt: new Date(at.getTime() - SINCE_MINUTES * MINUTE_MS),
      lastActiveAt: at,
      judgedThrough: at,
    });
    for (const ruleId of ["930100", "930110"])
      await insertSpike(db, {
        zoneId: 102,
        ruleId,
        memberOf,
        evidence,
        openedAt: at,
        lastActiveAt: at,
        judgedThrough: at,
      });
  });

  const openIncident = async (): Promise<Page> => {
    const page = await visit("/alerts?kind=sources");
    await page.getByRole("link", { name: /attackers in zone 102/ }).click();
    await page.waitForURL(/\/alerts\/\d+/);
    await settle(page);
    return page;
  };

  test("an incident's page names every attacker, and each name opens its events", async () => {
    const page = await openIncident();
    const rows = page.getByRole("table").first().getByRole("row");
    await expect.poll(() => rows.count()).toBe(6);
    const row = rows.filter({ hasText: "198.51.100.23" });
    await row.getByText("triggered 41 different rules").waitFor();
    await row.getByText("active", { exact: true }).waitFor();
    await rows.filter({ hasText: "192.0.2.200" }).getByText("quiet", { exact: true }).waitFor();
    // Text of a request stays text.
    await rows.filter({ hasText: "onerror" }).waitFor();
    expect(await page.locator("table img").count()).toBe(0);
    await row.getByRole("link", { name: "198.51.100.23" }).click();
    await page.waitForURL(/\/explorer\?.*address(?:%3A|:)198\.51\.100\.23/);
  });

  test("the rules of an incident lead to their own alerts, which say what they are part of", async () => {
    const page = await openIncident();
    const incident = page.url().replace(/^.*\/alerts\/(\d+).*$/, "$1");
    await page.getByRole("link", { name: "930100" }).click();
    await page
      .getByRole("status")
      .filter({ hasText: `part of alert ${incident}` })
      .waitFor();
    await visit("/alerts?rule=9301*");
    const rows = page.getByRole("listitem").filter({ hasText: `part of alert ${incident}, which notifies` });
    await expect.poll(() => rows.count()).toBe(2);
  });

  test("one attacker is silenced and another resolved, and the incident goes on", async () => {
    const page = await openIncident();
    const rows = page.getByRole("table").first().getByRole("row");
    const silenced = rows.filter({ hasText: "203.0.113.9" });
    await silenced.getByRole("button", { name: "Silence" }).click();
    await page.getByText(/longwatch silences add --zone 102 --ip=203\.0\.113\.9 --for 120m/).waitFor();
    await page.getByLabel("Reason").fill("our own scan");
    await page.getByRole("button", { name: "Silence for 2 h" }).click();
    await rows.filter({ hasText: "onerror" }).getByRole("button", { name: "Silence" }).waitFor();
    const resolved = rows.filter({ hasText: "198.51.100.77" });
    await resolved.getByRole("button", { name: "Resolve" }).click();
    await page.getByLabel("Note for the others (may stay empty)").fill("blocked");
    await page.getByRole("dialog").getByRole("button", { name: "Resolve" }).click();
    await resolved.getByText("resolved", { exact: true }).waitFor();
    const { pool } = openWorld().running.database;
    const { rows: found } = await pool.query(
      "select state, (select matchers from silences where reason = 'our own scan') from alerts where kind = 'sources' and zone_id = 102",
    );
    expect(found).toEqual([{ state: "firing", matchers: { zone: [102], ip: ["203.0.113.9"] } }]);
  });
}
