import { beforeAll, expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { settle } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";
import type { Visit } from "./pages.ts";

/** The tests of the alerts page and of the page of silences. */
export function testAlertsPage(visit: Visit, openWorld: () => BrowserWorld): void {
  beforeAll(async () => {
    const { db } = openWorld().running.database;
    // The end of a minute that is over: the detector has nothing to add to it, and the evidence stays.
    const at = new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS);
    for (const ruleId of ["944100", "944110"])
      await insertSpike(db, {
        zoneId: 102,
        ruleId,
        severity: "critical",
        openedAt: at,
        lastActiveAt: at,
        judgedThrough: at,
      });
  });

  test("alerts that are selected are silenced together; the silence is seen, extended and ended", async () => {
    const page = await visit("/alerts?rule=944*");
    const rows = page.getByRole("listitem").filter({ hasText: "rule 9441" });
    await expect.poll(() => rows.count()).toBe(2);
    for (const row of await rows.all()) await row.getByRole("checkbox").check();
    await page.getByText("2 selected").waitFor();
    await page.getByRole("button", { name: "Silence", exact: true }).click();
    await page.getByLabel("Reason").fill("planned test");
    await page.getByRole("button", { name: "Silence for 2 h" }).click();
    await page.getByText("2 of 2 done.").waitFor();
    await expect.poll(() => rows.filter({ hasText: "planned test" }).count()).toBe(2);

    await page.getByRole("link", { name: "silenced", exact: true }).first().click();
    await page.waitForURL(/\/silences/);
    const silence = page.getByRole("listitem").filter({ hasText: "planned test" });
    await silence.getByText("address 203.0.113.7").waitFor();
    await silence.getByText("It mutes 2 unresolved alerts now").waitFor();
    await silence.getByRole("button", { name: /^Extend silence/ }).click();
    await page.getByRole("menuitem", { name: "by 8 hours" }).click();
    await silence.getByText(/in 9 h 5\d min|in 10 h/).waitFor();

    await silence.getByRole("link").first().click();
    await page.waitForURL(/\/alerts\/\d+/);
    await page.getByRole("status").filter({ hasText: "planned test" }).waitFor();
    // The alert may have been under other silences before.
    const silenced = page.getByText(/^Silenced by silence \d+ of .*planned test/);
    await silenced.waitFor();
    const [, id = ""] = /silence (\d+)/.exec(await silenced.innerText()) ?? [];
    await page.getByRole("button", { name: /^End now/ }).click();
    await page.getByText(new RegExp(`^Silence ${id} no longer muted the alert`)).waitFor();
  });

  test("a silence is added on the page of silences, with the service's rules and the number of muted alerts", async () => {
    const page = await visit("/silences");
    await page.getByRole("button", { name: "Add a silence" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Rule").fill("94*1");
    await dialog.getByText("a * may only be at the end").waitFor();
    await dialog.getByLabel("Rule").fill("944100, 944110");
    await dialog.getByText(/It mutes 2 unresolved alerts now/).waitFor();
    await dialog.getByText("longwatch silences add --rule=944100 --rule=944110 --for 120m").waitFor();
    await dialog.getByLabel("Reason").fill("added by hand");
    await dialog.getByRole("button", { name: "Silence for 2 h" }).click();
    const row = page.getByRole("listitem").filter({ hasText: "added by hand" });
    await row.getByText("rule 944100 or 944110").waitFor();
    await row.getByRole("button", { name: /^End now/ }).click();
    await page
      .getByText(/^expired$/)
      .first()
      .waitFor();
  });

  test("the dialog offers the alert's address or network first, then its rule, then its zone", async () => {
    const page = await visit("/alerts?rule=944*");
    await page
      .getByRole("link", { name: /rule 9441/ })
      .first()
      .click();
    await page.waitForURL(/\/alerts\/\d+/);
    await settle(page);
    await page.keyboard.press("s");
    const choices = page.getByRole("radiogroup", { name: "What is silenced" });
    await expect
      .poll(() => choices.locator("label").allInnerTexts())
      .toEqual([
        "address 203.0.113.7",
        "network AS64500",
        expect.stringMatching(/^rule 9441/),
        "everything in the zone",
      ]);
    await page.getByText(/longwatch silences add --zone 102 --ip=203\.0\.113\.7 --for 120m/).waitFor();
  });
}
