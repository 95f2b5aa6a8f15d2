import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { settle, type WatchedOptions } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";
import type { Visit } from "./pages.ts";

type Open = (options?: Partial<WatchedOptions>) => Promise<Page>;

/** Tests of the operations page, in the world of the console's tests. */
export function testOperationsPage(
  { open, visit }: { open: Open; visit: Visit },
  world: () => BrowserWorld,
): void {
  test("a test message is sent, and the routing test names the channel that would be notified", async () => {
    const page = await visit("/operations");
    await page.getByRole("button", { name: "Send a test message on terminal" }).click();
    await page.getByText("The test message was delivered.").waitFor();
    await page.getByRole("tab", { name: "Routing" }).click();
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("notified: terminal").first().waitFor();
    expect(new URL(page.url()).searchParams.get("severity")).toBe("critical");
  });

  test("a key is created, shown once, named in the audit trail, and revoked", async () => {
    const page = await visit("/operations?tab=keys");
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name").fill("dashboard");
    await page.getByLabel("Expires").fill("soon");
    await page.getByLabel("Your admin key again").fill("lw_wrong");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("The access key is not valid").waitFor();
    await page.getByLabel("Your admin key again").fill(world().adminKey);
    await page.getByRole("button", { name: "Create" }).click();
    await page
      .getByText(/must be .*90d|must be/)
      .first()
      .waitFor();
    expect(await page.getByLabel("Name").inputValue()).toBe("dashboard");
    await page.getByLabel("Expires").fill("90d");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText(/^lw_[a-z0-9]+_\w{32,}$/).waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByText("ends with lw_browsertest_").waitFor();
    await page.getByRole("button", { name: "Revoke the key dashboard" }).click();
    await page.getByRole("button", { name: "Revoke for ever" }).click();
    await page.getByRole("button", { name: "Revoke the key dashboard" }).waitFor({ state: "detached" });
    await visit("/operations?tab=audit&action=key.");
    await page.getByRole("button", { name: "key.created" }).first().waitFor();
  });

  test("a list without a page of its own is a table with a column for each member", async () => {
    const { origin, adminKey } = world();
    const body = JSON.stringify({ ip: "198.51.100.0/24", zone: 101, reason: "<b>the office</b>" });
    const headers = { accesskey: adminKey, "content-type": "application/json" };
    const added = await fetch(`${origin}/api/v1/known-sources`, { method: "POST", headers, body });
    expect(added.status).toBe(201);
    const page = await open();
    await page.goto("/operations");
    await page.getByRole("tab", { name: "Known sources" }).click();
    await page.getByRole("columnheader", { name: "created by" }).waitFor();
    const row = page.getByRole("row").filter({ hasText: "198.51.100.0/24" });
    await row.getByText("<b>the office</b>").waitFor();
    expect(await row.innerText()).toMatch(/ip\s.*\s(?:zone )?101\s/s);
  });

  test("the audit trail shows nested details as lines with names, and their texts as texts", async () => {
    const { db } = world().running.database;
    const matchers = { zone: [101], rule: ["942*"], url: ["<img src=x onerror=tripped(1)>"] };
    const details = { matchers, reason: "<b>a load test</b>", expiresAt: "2026-11-22T09:00:00.000Z" };
    await writeAuditEntry(db, { actor: "test", action: "silence.added", subject: "silence 900", details });
    const page = await open();
    await page.goto("/operations?tab=audit&action=silence.added");
    await settle(page);
    const entry = page.getByRole("listitem").filter({ hasText: "silence 900" }).first();
    const lines = (await entry.innerText()).split("\n").map((line) => line.trim());
    expect(lines).toEqual(
      expect.arrayContaining([
        "matchers",
        "zone 101",
        "rule 942*",
        "whole URL <img src=x onerror=tripped(1)>",
      ]),
    );
    expect(lines).toContain("reason <b>a load test</b>");
    expect(await entry.innerText()).not.toMatch(/[{}"]/);
    expect(await entry.locator("img, b b").count()).toBe(0);
  });
}
