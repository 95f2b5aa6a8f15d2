import type { Page } from "playwright-core";
import { settle } from "./open-browser.ts";

export interface ShownPage {
  readonly name: string;
  readonly path: string;
  /** What is done before the page is looked at. */
  readonly act?: (page: Page) => Promise<void>;
}

/** The plot of several zones has a second line, and its legend a name for that. */
async function waitForSecondLine(page: Page): Promise<void> {
  await page
    .getByLabel(/a dashed line: [\d,]+ /)
    .first()
    .waitFor();
}

/** Shows a page of the console, by its path, in a tab that tests share. */
export type Visit = (path: string) => Promise<Page>;

/** Every page of the console, and the states of it that are worth a look. */
export const PAGES: readonly ShownPage[] = [
  { name: "overview", path: "/" },
  { name: "compared", path: "/?against=before&span=6h", act: waitForSecondLine },
  { name: "explorer", path: "/explorer?not=action:log" },
  { name: "compared-events", path: "/explorer?against=week&span=6h", act: waitForSecondLine },
  {
    name: "event",
    path: "/explorer?is=ruleId:942100&by=url",
    act: async (page) => {
      await page
        .getByRole("button", { name: /^Open the event of/ })
        .first()
        .click();
      await page.getByRole("dialog").waitFor();
    },
  },
  { name: "alerts", path: "/alerts?state=all" },
  { name: "alert", path: "/alerts/1" },
  {
    name: "silence",
    path: "/alerts?rule=942100&state=all",
    act: async (page) => {
      await page
        .getByRole("link", { name: /rule 942100/ })
        .first()
        .click();
      await page.waitForURL(/\/alerts\/\d+/);
      await page.getByRole("button", { name: "Silence", exact: true }).waitFor();
      await page.keyboard.press("s");
      await page.getByText("In the last week it would have").waitFor();
    },
  },
  {
    name: "verdict",
    path: "/alerts?rule=942440",
    act: async (page) => {
      const link = page.getByRole("link", { name: /rule 942440/ });
      // The demo has no misfire in its first hour.
      if ((await link.count()) === 0) return;
      await link.first().click();
      await page.waitForURL(/\/alerts\/\d+/);
      await settle(page);
      for (const closed of await page.locator("details > summary").all()) await closed.click();
    },
  },
  { name: "silences", path: "/silences" },
  {
    name: "new-silence",
    path: "/silences?zone=101",
    act: async (page) => {
      await page.getByRole("button", { name: "Add a silence" }).click();
      await page.getByText(/^More:/).click();
      await page.getByText("In the last week it would have").waitFor();
    },
  },
  { name: "rules", path: "/rules" },
  {
    name: "review",
    path: "/review?zone=101",
    act: async (page) => {
      await page.getByText("Longwatch applies nothing").waitFor();
      const menu = page.getByRole("button", { name: "Compare with" });
      if ((await menu.count()) === 0) {
        await page.getByRole("button", { name: "Save this plan" }).click();
        await page.getByLabel("Name").fill("First switch");
        await page.getByLabel("Note").fill("agreed with the shop");
        await page.locator("form").getByRole("button", { name: "Save" }).click();
      }
      await menu.click();
      await page.getByRole("menuitem", { name: "First switch" }).first().click();
      await page.getByText("hostile requests stopped").waitFor();
      await settle(page);
    },
  },
  { name: "rule", path: "/rules/101?rule=942100&span=6h&z=8" },
  {
    name: "coverage",
    path: "/coverage?span=72h",
    act: async (page) => {
      await page
        .getByRole("button", { name: /sealed|searched/ })
        .last()
        .click();
      await page
        .getByText(/what the platform showed|rules? with|stored/)
        .first()
        .waitFor();
      await settle(page);
    },
  },
  {
    name: "archive",
    path: "/coverage?span=7d",
    act: async (page) => {
      const files = page.getByText(/^\d files?$/);
      // The demo has no archive day before its third day.
      if ((await files.count()) > 0) await files.first().click();
    },
  },
  { name: "digest", path: "/digest" },
  { name: "operations", path: "/operations" },
  { name: "routing", path: "/operations?tab=routing&of=101&rule=942100&severity=critical" },
  { name: "jobs", path: "/operations?tab=jobs" },
  { name: "keys", path: "/operations?tab=keys" },
  { name: "sessions", path: "/operations?tab=sessions" },
  { name: "audit", path: "/operations?tab=audit" },
  { name: "privacy", path: "/operations?tab=privacy" },
  { name: "settings", path: "/operations?tab=settings" },
  { name: "known-sources", path: "/operations?tab=known.list" },
  {
    name: "palette",
    path: "/alerts",
    act: async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("textbox", { name: "Command" }).waitFor();
    },
  },
];

/** Loads the console at the page's address. In a tab that has the console already, goes there as its links do. */
export async function show(page: Page, { path, act }: ShownPage): Promise<void> {
  if (page.url().startsWith("http"))
    await page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)})`);
  else await page.goto(path);
  await settle(page);
  await act?.(page);
}
