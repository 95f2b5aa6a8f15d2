import { expect, test } from "vitest";
import type { Visit } from "./pages.ts";

/** Tests of the rule page, in the world of the console's tests: rule 942100 of zone 101 is attacked. */
export function testRulePage(visit: Visit): void {
  test("the overview leads to the rule's page, which shows the spike and who caused it", async () => {
    const page = await visit("/");
    await page.getByRole("link", { name: "SQL injection" }).first().click();
    await page.getByRole("heading", { name: /^Rule 942100/ }).waitFor();
    await page.getByText("spikes now").waitFor();
    await page.getByText(/events during the spike, against/).waitFor();
    expect(await page.getByRole("img", { name: /[1-9]\d* bars in a spike/ }).count()).toBe(1);
    await page.goBack();
    await page.getByRole("heading", { name: "Rules that changed most" }).waitFor();
  });

  test("the list of rules is sorted by its headings, filtered by words, and has a trend of each rule", async () => {
    const page = await visit("/rules?zone=101");
    const names = () => page.locator("tbody tr td:first-child a").allInnerTexts();
    const byTotal = await names();
    await page.getByRole("button", { name: "rule", exact: true }).click();
    await page
      .getByRole("columnheader", { name: "rule" })
      .and(page.locator("[aria-sort=ascending]"))
      .waitFor();
    expect(await names()).toEqual([...byTotal].sort((one, other) => Number(one) - Number(other)));
    expect(await page.getByRole("img", { name: /^Events of rule/ }).count()).toBe(byTotal.length);

    await page.getByLabel("Find a rule").fill("sql 9421");
    await expect.poll(names).toEqual(["942100"]);
    expect(new URL(page.url()).searchParams.get("find")).toBe("sql 9421");
    await page.getByLabel("Find a rule").fill("nothing");
    await page.getByText(/^None of the \d+ rules matches/).waitFor();
    await page.getByRole("button", { name: "Remove the filters" }).click();
    await expect.poll(async () => (await names()).length).toBe(byTotal.length);
  });

  test("another floor shows which alerts would not have been sent, and the lines that keep it", async () => {
    const page = await visit("/rules/101?rule=942100");
    await page.getByText(/The settings in force alert/).waitFor();
    const floor = page.getByRole("textbox", { name: "Floor" });
    await floor.fill("many");
    await page.getByText("must be a number from 1 to 1,000,000").waitFor();
    await floor.fill("1000000");
    await floor.press("Enter");
    await page.getByText(/You would have been alerted never instead of/).waitFor();
    await page.getByText("not sent").first().waitFor();
    const lines = await page.getByLabel("Lines of the configuration file").innerText();
    expect(lines).toContain('rule: ["942100"]');
    // The lines name the settings as the labels do.
    await page.getByRole("textbox", { name: "z: score of a spike" }).waitFor();
    expect(lines).toMatch(/z: [\d.]+ # score of a spike/);
    await page.getByRole("textbox", { name: "floor: fewest events of a spike" }).waitFor();
    expect(lines).toContain("floor: 1000000 # fewest events of a spike");
    expect(new URL(page.url()).searchParams.get("floor")).toBe("1000000");
    await page.getByRole("slider", { name: "Floor" }).press("Home");
    await expect.poll(() => new URL(page.url()).searchParams.get("floor")).toBe("1");
  });
}
