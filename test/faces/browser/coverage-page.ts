import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import { settle, type WatchedOptions } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";
import { show, type Visit } from "./pages.ts";
import { signInAs } from "./sign-in.ts";

type Open = (options?: Partial<WatchedOptions>) => Promise<Page>;

/** Tests of the coverage page, in the world of the console's tests. */
export function testCoveragePage(
  { open, visit }: { open: Open; visit: Visit },
  world: () => BrowserWorld,
): void {
  test("a click on a day leads to its hours, a click on an hour to its evidence, and back undoes both", async () => {
    const { pool } = world().running.database;
    // The service copies the oldest hours first.
    await vi.waitFor(
      async () => {
        const { rows } = await pool.query(
          "select from rule_buckets where zone_id = 101 and width = 3600 and starts_at = date_trunc('day', now(), 'UTC')",
        );
        expect(rows).not.toEqual([]);
      },
      { timeout: 60_000, interval: 500 },
    );
    const page = await visit("/coverage?span=7d");
    const days = page.getByRole("group", { name: "zone 101, by day" });
    // The axis has a label for each of the days, those before the first that was watched too.
    expect(await days.getByRole("button").count()).toBeGreaterThanOrEqual(8);
    const today = new Date().toISOString().slice(5, 10);
    expect(await days.locator("+ div").innerText()).toContain(today);
    await days.getByRole("button").last().click();
    await page.getByRole("group", { name: "zone 101, by hour" }).waitFor();
    await page.getByRole("group", { name: "zone 101, by hour" }).getByRole("button").first().click();
    await page.getByText("the platform counts").waitFor();
    await page.getByRole("columnheader", { name: "the platform", exact: true }).waitFor();
    await page.goBack();
    await page.getByText("the platform counts").waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("group", { name: "zone 101, by day" }).waitFor();
  });

  test("the hours of each destination have a strip with words, and a refused event has its reason", async () => {
    const { pool } = world().running.database;
    await vi.waitFor(
      async () => {
        const { rows } = await pool.query(
          "select from forward_destinations where acknowledged_at is not null",
        );
        expect(rows).not.toEqual([]);
      },
      { timeout: 60_000, interval: 500 },
    );
    await pool.query(
      "insert into forward_refusals values (now(), now(), 101, 'files', 'refused-1', decode(repeat('00', 12), 'hex'), 'no such field')",
    );
    const page = await open();
    await page.goto("/coverage?span=24h");
    await settle(page);
    const row = page.locator("[data-destination=files]");
    await row.getByText("accepts events").waitFor();
    await row.getByRole("img", { name: /^zone 101 at files: .*\d+ open/ }).waitFor();
    await row.getByText("1 refused event").click();
    await row.getByText("no such field").waitFor();
    await row.getByRole("button", { name: "Try again: files" }).click();
    await row.getByText("1 refused event").waitFor({ state: "detached" });
  });

  test("an entry in quarantine has its reason and text, and is stored or kept when it is tried again", async () => {
    const { browser, origin, running } = world();
    const { pool } = running.database;
    // Older than what the platform shows, so that no hour of the other tests waits for it.
    const at = Date.now() - 100 * 3_600_000;
    const readable = `{"logId":"quarantined-1","timestamp":${at},"log":"{}","labels":{"ruleId":"942100"}}`;
    const hostile = '{"logId":{"<b>\\u202e":1},"log":"from 203.0.113.7"}';
    const { rows } = await pool.query<{ id: string }>(
      `insert into quarantined_entries (zone_id, route, reason, raw)
       select 102, 'list', 'unreadable: <i>' || place, convert_to(raw, 'utf8')
       from unnest($1::text[]) with ordinality as given(raw, place) order by place returning id`,
      [[readable, hostile]],
    );
    const [stored, kept] = rows.map(({ id }) => id);
    const page = await open();
    await page.goto("/coverage?zone=102&span=6h");
    await settle(page);
    const entry = page.locator(`[data-quarantined="${kept}"]`);
    await entry.getByText("unreadable: <i>2").waitFor();
    await entry.getByText("Text", { exact: true }).click();
    await entry.getByText("from 203.0.113.7").waitFor();

    await entry.getByRole("button", { name: `Try again: entry ${kept}` }).click();
    await page.getByText("0 entries stored, 1 kept.").waitFor();
    await page.getByRole("button", { name: "Try all again" }).click();
    await page.getByText("1 entry stored, 1 kept.").waitFor();
    await page.locator(`[data-quarantined="${stored}"]`).waitFor({ state: "detached" });
    expect(await entry.count()).toBe(1);
    const found = await pool.query("delete from waf_events where log_id = 'quarantined-1' returning zone_id");
    expect(found.rows).toEqual([{ zone_id: 102 }]);

    const signedIn = await signInAs(browser, origin, running.database, "reader");
    const readers = await open({ signedIn });
    await readers.goto("/coverage?zone=102&span=6h");
    await readers.locator(`[data-quarantined="${kept}"]`).waitFor();
    expect(await readers.getByRole("button", { name: /^Try (?:all )?again/ }).count()).toBe(0);
    await pool.query("delete from quarantined_entries where id = $1", [kept]);
    // Nothing is shown without an entry.
    await readers.reload();
    await settle(readers);
    expect(await readers.getByText("Quarantine", { exact: true }).count()).toBe(0);
  });

  test("on a phone the evidence of a clicked hour is scrolled to", async () => {
    const page = await visit("/coverage?span=72h");
    await page.setViewportSize({ width: 390, height: 740 });
    await page.getByRole("group", { name: "zone 101, by hour" }).getByRole("button").last().click();
    const close = page.getByRole("button", { name: "Close" });
    await close.waitFor();
    const isSeen = async () => {
      const box = await close.boundingBox();
      return box !== null && box.y >= 0 && box.y < 740;
    };
    await expect.poll(isSeen).toBe(true);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test("a verification is started with the span of the page, and ends without a difference", async () => {
    const [from, to] = [-8, -6].map((hours) => {
      const at = Math.floor(Date.now() / 3_600_000 + hours) * 3_600_000;
      return new Date(at).toISOString().replace(".000Z", "Z");
    });
    const page = await visit(`/coverage?zone=101&from=${from}&to=${to}`);
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByLabel("From").fill("yesterday");
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    await page.getByText("must be an ISO 8601 time").first().waitFor();
    expect(await page.getByLabel("From").inputValue()).toBe("yesterday");
    await page.getByLabel("From").fill(from ?? "");
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    const run = page
      .locator("[data-run]")
      .filter({ hasText: /\d checks|failed/ })
      .first();
    await run.waitFor({ timeout: 60_000 });
    const outcome = await run.locator(":scope > b").textContent();
    // The whole run, so that a failure names the check that differs.
    if (outcome?.trim() !== "no difference") throw new Error((await run.textContent()) ?? "");
  });

  test("a span that cannot be read is refused at its field before anything is sent", async () => {
    const page = await visit("/coverage?zone=102&span=6h");
    const sent: string[] = [];
    const note = (request: { method(): string; url(): string }) => {
      if (request.method() === "POST") sent.push(request.url());
    };
    page.on("request", note);
    await page.getByRole("button", { name: "Start" }).click();
    const from = page.getByLabel("From");
    const to = page.getByRole("textbox", { name: "To", exact: true });
    const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

    await to.fill(inHours(2));
    await page.getByRole("button", { name: "Verify", exact: true }).click();
    expect(await readFault(to)).toMatch(/^must be now \(.*Z\) or earlier$/);
    expect(await page.evaluate("document.activeElement.getAttribute('aria-invalid')")).toBe("true");
    await to.fill(inHours(-2));
    await expect.poll(() => to.getAttribute("aria-invalid")).not.toBe("true");
    await from.fill(inHours(-1));
    expect(await readFault(to)).toMatch(/^must be after from, /);
    await from.fill(inHours(-24 * 40));
    expect(await readFault(from)).toMatch(/^must be at most 31 days before to/);

    await page.getByText("Read again", { exact: true }).click();
    await from.fill(inHours(-80));
    expect(await readFault(from)).toMatch(/or later: the platform keeps events for 72 hours$/);
    await page.getByText("Verify archive", { exact: true }).click();
    await page.getByText("has no archive day yet").waitFor();
    await page.getByRole("button", { name: "Verify archive" }).click();
    expect(sent).toEqual([]);
    expect(await from.inputValue()).not.toBe("");
    page.off("request", note);
  });

  test("a refusal of the service is shown at its field, and another failure in the form", async () => {
    const page = await open();
    await page.goto("/coverage?zone=102&span=1h");
    await settle(page);
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByText("Read again", { exact: true }).click();
    // As of a page whose clock is behind the service's: what it sends is in the future there.
    await page.route(/\/coverage\/runs$/, (route) => {
      const body = JSON.parse(route.request().postData() ?? "{}") as object;
      const to = new Date(Date.now() + 3_600_000).toISOString();
      return route.continue({ postData: JSON.stringify({ ...body, to }) });
    });
    await page.getByRole("button", { name: "Read again", exact: true }).click();
    const to = page.getByRole("textbox", { name: "To", exact: true });
    expect(await readFault(to)).toMatch(/^must be now \(.*Z\) or earlier$/);
    await to.fill(`${await to.inputValue()} `);
    await expect.poll(() => to.getAttribute("aria-invalid")).not.toBe("true");
    await page.unroute(/\/coverage\/runs$/);
    await page.route(/\/coverage\/runs$/, (route) =>
      route.request().method() === "POST" ? route.abort() : route.continue(),
    );
    await page.getByRole("button", { name: "Read again", exact: true }).click();
    await page.getByRole("dialog").getByText("The service does not answer").waitFor();
    await page.unroute(/\/coverage\/runs$/);
  });

  test("an archive day shows its files, and a check of it names the damaged one until it is whole again", async () => {
    const page = await visit("/coverage?zone=101&span=24h");
    await page.getByRole("button", { name: "Show the archive days" }).click();
    const verify = page.getByRole("button", { name: /^Verify now/ });
    await verify.click();
    await page.getByText("every file equals its hash").waitFor({ timeout: 60_000 });
    await page.getByText("1 file", { exact: true }).click();
    const shown = page.getByText(/^events\/zone=101\/.*\.parquet$/);
    const file = path.join(world().archiveFolder, await shown.innerText());
    expect(await page.getByText(createHash("sha256").update(readFileSync(file)).digest("hex")).count()).toBe(
      1,
    );
    const whole = readFileSync(file);
    writeFileSync(file, whole.with(whole.length >> 1, (whole[whole.length >> 1] ?? 0) ^ 1));

    await verify.click();
    await page
      .getByText(/has another SHA-256/)
      .first()
      .waitFor({ timeout: 60_000 });
    await page.getByText("1 problem.").waitFor();
    writeFileSync(file, whole);
    await verify.click();
    await page
      .getByText(/has another SHA-256/)
      .first()
      .waitFor({ state: "hidden", timeout: 60_000 });
    await page.getByText("every file equals its hash").waitFor();
  });

  test("a reader sees evidence and channels, no control that its role may not use, and neither keys, audit trail nor configuration", async () => {
    const { browser, origin, running } = world();
    const page = await open({ signedIn: await signInAs(browser, origin, running.database, "reader") });
    await page.goto("/coverage?span=72h");
    await settle(page);
    await page.getByRole("group", { name: "zone 101, by hour" }).getByRole("button").last().click();
    await page.getByRole("link", { name: "See its events" }).waitFor();
    for (const name of ["Start", "Verify this hour", "Read it again"])
      expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
    await show(page, { name: "archive", path: "/coverage?zone=101&span=7d" });
    await page.getByText("1 file", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: /^Verify now/ }).count()).toBe(0);
    await show(page, { name: "keys", path: "/operations?tab=keys" });
    const tabs = await page.getByRole("tab").allInnerTexts();
    const lists = ["Accounts", "Known sources", "Custom conditions", "Exclusions", "Notes"];
    expect(tabs).toEqual(["Channels", "Routing", "Jobs", "Sessions", ...lists]);
    await page.getByText("terminal").first().waitFor();
    expect(await page.getByRole("button", { name: /Send a test/ }).count()).toBe(0);
  });
}

/** The rule that a field says it breaks, once it says one. */
async function readFault(field: Locator): Promise<string> {
  await expect.poll(() => field.getAttribute("aria-invalid")).toBe("true");
  const ids = ((await field.getAttribute("aria-describedby")) ?? "").split(" ");
  const errorId = ids.find((id) => id.endsWith("-error")) ?? "";
  return field.page().locator(`[id="${errorId}"]`).innerText();
}
