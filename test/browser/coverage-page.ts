import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { settle, type WatchedOptions } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";
import { signInAs } from "./sign-in.ts";

type Open = (options?: Partial<WatchedOptions>) => Promise<Page>;

/** Tests of the coverage page, in the world of the console's tests. */
export function testCoveragePage(open: Open, world: () => BrowserWorld): void {
  test("a click on a day leads to its hours, a click on an hour to its evidence, and back undoes both", async () => {
    const page = await open();
    await page.goto("/coverage?span=7d");
    await settle(page);
    await page.getByRole("group", { name: "zone 101, by day" }).getByRole("button").last().click();
    await page.getByRole("group", { name: "zone 101, by hour" }).waitFor();
    await page.getByRole("group", { name: "zone 101, by hour" }).getByRole("button").first().click();
    await page.getByText("the platform counts").waitFor();
    await page.getByRole("columnheader", { name: "the platform", exact: true }).waitFor();
    await page.goBack();
    await page.getByText("the platform counts").waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("group", { name: "zone 101, by day" }).waitFor();
  });

  test("a verification is started with the span of the page, and ends without a difference", async () => {
    const page = await open();
    const [from, to] = [-8, -6].map((hours) => {
      const at = Math.floor(Date.now() / 3_600_000 + hours) * 3_600_000;
      return new Date(at).toISOString().replace(".000Z", "Z");
    });
    await page.goto(`/coverage?zone=101&from=${from}&to=${to}`);
    await settle(page);
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByLabel("From").fill("yesterday");
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await page.getByText("must be an ISO 8601 time").first().waitFor();
    expect(await page.getByLabel("From").inputValue()).toBe("yesterday");
    await page.getByLabel("From").fill(from ?? "");
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await page.getByText("no difference").first().waitFor({ timeout: 60_000 });
  });

  test("a reader sees the evidence and no control that its role may not use", async () => {
    const { browser, origin, running } = world();
    const page = await open({ cookies: await signInAs(browser, origin, running.database, "reader") });
    await page.goto("/coverage?span=72h");
    await settle(page);
    await page.getByRole("group", { name: "zone 101, by hour" }).getByRole("button").last().click();
    await page.getByRole("link", { name: "See its events" }).waitFor();
    for (const name of ["Start", "Verify this hour", "Read it again"])
      expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
  });
}
