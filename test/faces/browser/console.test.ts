import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { issueKey, withdrawKey } from "#test/support/issue-key.ts";
import { testAlertsPage } from "./alerts-page.ts";
import { testCoveragePage } from "./coverage-page.ts";
import { makeHostile } from "./hostile.ts";
import { testIncidentPage } from "./incident-page.ts";
import { CHROMIUM, openWatched, settle, type Watched, type WatchedOptions } from "./open-browser.ts";
import { type BrowserWorld, openWorld } from "./open-world.ts";
import { testOperationsPage } from "./operations-page.ts";
import { PAGES, show } from "./pages.ts";
import { testRulePage } from "./rule-page.ts";
import { testSession } from "./session.ts";
import { testVerdictPage } from "./verdict-page.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(CHROMIUM === null)(
  "the console in Chromium (skipped where chromium is not installed)",
  () => {
    let world: BrowserWorld;
    /** The window that most tests share, so that its cache has the console's scripts. */
    let usual: Watched | undefined;
    const watched = new Set<Watched>();

    beforeAll(async () => {
      world = await openWorld();
      // The tests look at an attack that was noticed.
      await vi.waitFor(async () => expect(await listAttackAlerts(world)).not.toEqual([]), {
        timeout: 220_000,
        interval: 500,
      });
    });
    afterAll(() => world?.close());
    afterEach(async ({ task }) => {
      // What a failed test left open would hide the page from the next one.
      if (task.result?.state === "fail") shared = undefined;
      if (usual !== undefined) watched.add(usual);
      const all = [...watched];
      watched.clear();
      await Promise.all(all.filter((one) => one !== usual).map(({ context }) => context.close()));
      const pages = usual?.context.pages() ?? [];
      await Promise.all(pages.filter((page) => page !== shared).map((page) => page.close()));
      expect(all.flatMap(({ faults }) => faults.splice(0))).toEqual([]);
    });

    let shared: Page | undefined;
    /** Shows a page in the tab that these tests share, as a link does. A load would take four times as long. */
    async function visit(path: string): Promise<Page> {
      shared ??= await open();
      await show(shared, { name: path, path });
      return shared;
    }

    /** Opens an empty tab: for tests that hold up its requests or its clock, or that have changed what it may have read. */
    async function open(options: Partial<WatchedOptions> = {}): Promise<Page> {
      const { browser, origin, signedIn } = world;
      const isUsual = Object.keys(options).length === 0;
      const one = (isUsual && usual) || (await openWatched(browser, { origin, signedIn, ...options }));
      if (isUsual) usual = one;
      watched.add(one);
      return one.openPage();
    }

    test("a sign-in link signs in once and leaves no token in the address", async () => {
      const link = await world.makeLink();
      const page = await open({ signedIn: null });
      await page.goto(link);
      await page.getByRole("heading", { name: "Attention" }).waitFor();
      expect(page.url()).not.toContain("#");
      const other = await open({ signedIn: null });
      await other.goto(link);
      await other.getByText("A link works once").waitFor();
      expect(other.url()).not.toContain("#");
      // As a link that cannot be decoded.
      await other.goto("/livez");
      await other.goto("/sign-in#%E0%A4%A");
      await other.getByText("A link works once").waitFor();
    });

    test("the sign-in page has the theme of the system, and each command in one line", async () => {
      const page = await open({ signedIn: null });
      await page.addInitScript("localStorage.clear()");
      const root = page.locator("html");
      await page.emulateMedia({ colorScheme: "dark" });
      await page.goto("/");
      const commands = page.getByLabel("Command");
      await commands.first().waitFor();
      expect(await root.getAttribute("data-mantine-color-scheme")).toBe("dark");
      await page.emulateMedia({ colorScheme: "light" });
      await expect.poll(() => root.getAttribute("data-mantine-color-scheme")).toBe("light");
      await page.setViewportSize({ width: 390, height: 740 });
      const heights = await commands.evaluateAll((all) => all.map((one) => one.clientHeight));
      expect(heights).toHaveLength(2);
      expect(Math.max(...heights)).toBeLessThan(40);
    });

    test("the theme's switch leaves the theme of the system and returns to it", async () => {
      const page = await open();
      await page.emulateMedia({ colorScheme: "dark" });
      await page.goto("/");
      await settle(page);
      const root = page.locator("html");
      const chosen = () => page.evaluate("localStorage.getItem('mantine-color-scheme-value')");
      await page.getByRole("button", { name: "Use the light theme" }).click();
      await expect.poll(() => root.getAttribute("data-mantine-color-scheme")).toBe("light");
      expect(await chosen()).toBe("light");
      await page.getByRole("button", { name: "Use the dark theme" }).click();
      await expect.poll(chosen).toBe("auto");
      await page.emulateMedia({ colorScheme: "light" });
      await expect.poll(() => root.getAttribute("data-mantine-color-scheme")).toBe("light");
    });

    test("a key that was revoked leads to the sign-in, and the next sign-in shows the same page", async () => {
      const wanted = {
        name: "short",
        role: "reader" as const,
        zoneIds: null,
        isMasked: false,
        expiresInMs: null,
      };
      const { key, listed } = await issueKey(world.running.database, wanted, "test");
      const page = await open({ signedIn: null });
      await page.goto("/alerts?state=all");
      await page.getByLabel("API key").fill("lw_wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("The access key is not valid").waitFor();
      await page.getByLabel("API key").fill(key.reveal());
      await page.getByRole("button", { name: "Sign in" }).click();
      await page
        .getByRole("link", { name: /rule 942100/ })
        .first()
        .waitFor();
      await withdrawKey(world.running.database, listed.keyId, "test");
      await page.keyboard.press("g");
      await page.keyboard.press("e");
      await page.getByLabel("API key").fill(world.adminKey);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("region", { name: "Events" }).waitFor();
      expect(new URL(page.url()).pathname).toBe("/explorer");
    });

    // One visit of each page serves both questions. A phone is a browser of its own.
    test.each([
      { theme: "dark", widths: [360] },
      { theme: "light", widths: [1440, 768] },
    ] as const)(
      "in the $theme theme no page has a serious or critical axe violation, or is wider than $widths pixels",
      async ({ theme, widths }) => {
        const page = await open({ theme, width: widths[0] });
        const found: string[] = [];
        for (const [index, shown] of PAGES.entries()) {
          await show(page, shown);
          const rules = theme === "dark" || IN_FULL.has(shown.name) ? {} : CONTRAST;
          let violations = await runAxe(page, rules);
          if (violations.length > 0) {
            // On a busy machine data that is asked for anew may be pale by now.
            await settle(page);
            violations = await runAxe(page, rules);
          }
          found.push(...violations.map((violation) => `${shown.name}: ${violation}`));
          // A page is shown at the width of the last one: another width costs as much as another page.
          for (const [turn, one] of (index % 2 === 0 ? widths : widths.toReversed()).entries()) {
            if (turn > 0) await page.setViewportSize({ width: one, height: 900 });
            const readExcess = () =>
              page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
            // An open dialog follows the new size a moment later.
            await vi
              .waitUntil(async () => (await readExcess()) <= 0, 5_000)
              .catch(async () => found.push(`${shown.name}: ${await readExcess()} pixels wider than ${one}`));
          }
          const bars = await page.getByRole("navigation", { name: "Pages" }).count();
          if (bars > 1) found.push(`${shown.name}: ${bars} navigations`);
        }
        expect(found).toEqual([]);
      },
    );

    test("/docs loads with less than 400 kB and 2 s of the main thread, and has no serious axe violation in either theme", async () => {
      const page = await open({ width: 360 });
      const devTools = await page.context().newCDPSession(page);
      await Promise.all([devTools.send("Network.enable"), devTools.send("Performance.enable")]);
      let bytes = 0;
      devTools.on("Network.loadingFinished", ({ encodedDataLength }) => {
        bytes += encodedDataLength;
      });
      await page.goto("/docs", { waitUntil: "networkidle" });
      const { metrics } = await devTools.send("Performance.getMetrics");
      const seconds = metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
      expect([bytes > 10_000, bytes < 400_000, seconds < 2]).toEqual([true, true, true]);
      // One function writes every operation: of each ten, one is enough.
      await page.evaluate(
        "[...document.querySelectorAll('details')].forEach((closed, index) => { closed.open = index % 10 === 0; })",
      );
      for (const [colorScheme, width] of [
        ["dark", 360],
        ["light", 1440],
      ] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        expect(await runAxe(page, colorScheme === "dark" ? {} : CONTRAST)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(
          0,
        );
      }
    });

    test("a click on a value filters, a click with Alt excludes, and the back button undoes each", async () => {
      // In a span that has ended no event comes in and none leaves it.
      const [from, to] = [3_600_000, 1_800_000].map((ago) => new Date(Date.now() - ago).toISOString());
      const first = `?by=ruleId&from=${from}&to=${to}`;
      const page = await visit(`/explorer${first}`);
      const total = await readTotal(page);
      await page
        .getByTitle(/^Filter for rule 942100/)
        .first()
        .click();
      await page.getByText("rule is 942100").waitFor();
      await settle(page);
      const included = await readTotal(page);
      await page.goBack();
      await settle(page);
      await page
        .getByTitle(/^Filter for rule 942100/)
        .first()
        .click({ modifiers: ["Alt"] });
      await page.getByText("rule is not 942100").waitFor();
      await settle(page);
      const excluded = await readTotal(page);
      expect(included).toBeGreaterThan(0);
      expect(excluded).toBeGreaterThan(0);
      expect(included + excluded).toBe(total);
      await page.goBack();
      await expect.poll(() => decodeURIComponent(new URL(page.url()).search)).toBe(first);
      await page.goForward();
      await expect.poll(() => new URL(page.url()).searchParams.get("not")).toBe("rule:942100");
    });

    test("a group by path has one row for a path, and every kind of filter turns into its opposite", async () => {
      const page = await visit("/explorer?zone=101&by=path&has=path:/");
      const values = await page.getByTitle(/^Filter for path /).allTextContents();
      expect(values.length).toBeGreaterThan(2);
      expect(values.filter((value) => /[?#]|:\/\//.test(value))).toEqual([]);
      expect(new Set(values).size).toBe(values.length);
      await page.getByText("path contains /").click();
      // The page names the filter a second time once it knows that no event matches.
      await page.getByRole("button", { name: "path does not contain /", exact: true }).waitFor();
      await page.getByText("No event matches.").first().waitFor();
      const [path = ""] = values;
      await visit(`/explorer?zone=101&not=${encodeURIComponent(`path:${path}`)}&by=path`);
      await expect.poll(() => page.getByTitle(/^Filter for path /).allTextContents()).not.toContain(path);
    });

    test("a value that no event can have is refused at its field, and the word of the screen is taken", async () => {
      const page = await visit("/explorer?zone=101");
      await page.getByRole("button", { name: "Filter", exact: true }).click();
      await page.getByRole("combobox", { name: "Field" }).click();
      await page.getByRole("option", { name: "action" }).click();
      await page.getByLabel("Value").fill("stopped");
      await page.getByRole("button", { name: "Add filter" }).click();
      await page.getByText(/must be block \(or blocked\)/).waitFor();
      expect(new URL(page.url()).searchParams.has("is")).toBe(false);
      await page.getByLabel("Value").fill("blocked");
      await page.getByRole("button", { name: "Add filter" }).click();
      await page.getByText("action is blocked").waitFor();
      await settle(page);
      expect(await readTotal(page)).toBeGreaterThan(0);
    });

    test("a value of an alert opens the events of the alert: its span, its zone, its rule and the value", async () => {
      const [attack] = await listAttackAlerts(world);
      const page = await visit(`/alerts/${attack?.id}`);
      await page.getByText("Who, where, what").waitFor();
      await page
        .getByTitle(/^Filter for path /)
        .first()
        .click();
      await page.getByRole("region", { name: "Events" }).waitFor();
      const { pathname, searchParams } = new URL(page.url());
      expect(pathname).toBe("/explorer");
      expect(searchParams.get("zone")).toBe("101");
      expect(searchParams.getAll("is")).toEqual(["rule:942100", expect.stringMatching(/^path:\/[^?#]*$/)]);
      expect(Date.parse(searchParams.get("to") ?? "")).toBeGreaterThan(
        Date.parse(searchParams.get("from") ?? ""),
      );
      await settle(page);
      expect(await readTotal(page)).toBeGreaterThan(0);
    });

    test("a span that ends in the future shows the events until now", async () => {
      const [from, to] = [-1, 24].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString());
      const page = await visit(`/explorer?zone=101&from=${from}&to=${to}`);
      expect(await readTotal(page)).toBeGreaterThan(0);
    });

    test("the values of an alert do not move while its counts come", async () => {
      const page = await open();
      const [attack] = await listAttackAlerts(world);
      const released = Promise.withResolvers<void>();
      await page.route(/\/context$|\/rules\/series\?/, async (route) => {
        await released.promise;
        await route.continue();
      });
      await page.goto(`/alerts/${attack?.id}`);
      const value = page.getByTitle(/^Filter for path /).first();
      await value.waitFor();
      const place = await value.boundingBox();
      await page.getByText("Asking the counts of the rule").waitFor();
      expect(await value.boundingBox()).toEqual(place);
      released.resolve();
      await page.getByText(/in the hour before$/).waitFor();
      await page.getByRole("img", { name: /^Events per minute of rule/ }).waitFor();
      expect(await value.boundingBox()).toEqual(place);
    });

    test("the table does not say that all events are read while it shows those of the search before", async () => {
      const page = await open();
      await page.goto("/explorer?zone=101");
      await settle(page);
      const about = page.getByText(/^newest first · /);
      await about.filter({ hasText: "scroll for older ones" }).waitFor();
      const released = Promise.withResolvers<void>();
      await page.route("**/search", async (route) => {
        if (!(route.request().postData() ?? "").includes("groupBy")) await released.promise;
        await route.continue();
      });
      await page
        .getByTitle(/^Filter for rule/)
        .first()
        .click();
      await page.getByText(/^rule is /).waitFor();
      await page.locator("[aria-busy=true]").first().waitFor();
      expect(await about.innerText()).not.toContain(", all");
      released.resolve();
      await settle(page);
    });

    test("an event opens with its decoded request, and its link shows it to somebody else", async () => {
      // The newest event of the rule alone may be an everyday one.
      const page = await visit("/explorer?is=ruleId:942100&is=path:/catalog/item");
      await page
        .getByRole("button", { name: /^Open the event of/ })
        .first()
        .waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      const drawer = page.getByRole("dialog");
      await drawer.getByRole("heading", { name: "Request" }).waitFor();
      expect(await drawer.innerText()).toMatch(/catalog\/item/);
      await page.keyboard.press("Escape");
      await drawer.waitFor({ state: "detached" });
    });

    test("an event shows its former values as text, and since when the platform no longer shows it", async () => {
      const page = await open();
      const hostile = `<img src=x onerror="tripped(1)">\u202E${"a".repeat(4_000)}`;
      const { rows } = await world.running.database.pool.query<{ at: Date }>(
        `insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, accepted_at, before, after)
         select zone_id, occurred_at, log_id, field, now(), accepted_at, before, after
         from (select * from waf_events where zone_id = 101 order by occurred_at limit 1) one cross join (values
           ('url', now(), $1, '/now'), ('ja4', null, 'old', 'new'), ('withdrawn', now(), null, null))
             as v(field, accepted_at, before, after)
         returning occurred_at as at`,
        [hostile],
      );
      const at = rows[0]?.at.getTime() ?? 0;
      const [from, to] = [at, at + 1].map((ms) => new Date(ms).toISOString());
      await page.goto(`/explorer?zone=101&from=${from}&to=${to}`);
      await settle(page);
      await page.getByRole("button", { name: /^Open the event of/ }).click();
      const changes = page.getByRole("dialog").locator("[data-changes]");
      await changes.waitFor();
      const text = await changes.innerText();
      expect(text).toMatch(/The platform no longer shows this event since \d{4}-\d\d-\d\d/);
      expect(text).toContain('formerly <img src=x onerror="tripped(1)">\\u{202e}aaa');
      expect(text).toContain("now /now");
      expect(text).toMatch(
        /stored old\s+shown new\s+shown by the search since .*; stored after a second look/,
      );
      expect(text.length).toBeLessThan(1_000);
      await world.running.database.pool.query("delete from event_revisions where after in ('/now', 'new')");
    });

    test("an export holds the events that the page counts", async () => {
      const page = await open();
      const [from, to] = [-3_600_000, -60_000].map((ms) => new Date(Date.now() + ms).toISOString());
      await page.goto(`/explorer?zone=101&is=ruleId:942100&from=${from}&to=${to}`);
      await settle(page);
      const total = await readTotal(page);
      await page.getByRole("button", { name: "Export" }).click();
      const download = page.waitForEvent("download");
      await page.getByRole("menuitem", { name: /NDJSON/ }).click();
      const lines = readFileSync(await (await download).path(), "utf8")
        .trim()
        .split("\n");
      await page.reload();
      await settle(page);
      // Late events come in while the page is read.
      expect(lines.length).toBeGreaterThanOrEqual(total);
      expect(lines.length).toBeLessThanOrEqual(await readTotal(page));
      expect(lines.every((line) => (JSON.parse(line) as { ruleId: string }).ruleId === "942100")).toBe(true);
    });

    test("text of attacks in every field of every answer stays text", async () => {
      const page = await open();
      await page.route(/\/(api\/v1|shield)\/(?!.*stream)/, async (route) => {
        const answer = await route.fetch();
        const body = (await answer.text()).trim();
        const json = body.startsWith("{") ? JSON.stringify(makeHostile(JSON.parse(body))) : body;
        await route.fulfill({ response: answer, body: json });
      });
      const hour = new Date(Date.now() - 5 * 3_600_000).toISOString().replace(/:.*/, ":00:00Z");
      for (const path of [
        "/",
        "/alerts?state=all",
        "/alerts/1",
        "/rules",
        "/rules/101?rule=942100&z=8",
        "/review?zone=101",
        `/coverage?hour=101/${hour}`,
        "/coverage?span=30d",
        ...PAGES.flatMap(({ path }) => (path.startsWith("/operations") ? [path] : [])),
      ]) {
        await show(page, { name: path, path });
      }
      await page.goto(
        "/explorer?q=%3Cimg%20src%3Dx%20onerror%3Dtripped(1)%3E&is=url:%3Cscript%3Etripped(1)%3C/script%3E",
      );
      await page.getByText("No event matches").first().waitFor();
      await page.goto("/explorer?by=url");
      await settle(page);
      await page
        .getByRole("button", { name: /^Open the event of/ })
        .first()
        .click();
      await page.getByRole("dialog").getByText("onerror").first().waitFor();
      await page.unrouteAll({ behavior: "ignoreErrors" });
    });

    test("a page says that the service does not answer, and shows its numbers again when it does", async () => {
      const page = await open();
      await page.clock.install();
      await page.goto("/");
      await settle(page);
      await page.route(/\/api\/v1\//, (route) => route.abort());
      // By then the page asks again for all of its numbers.
      await page.clock.fastForward(5 * 60_000);
      await page.getByText("The service does not answer").first().waitFor({ timeout: 60_000 });
      expect(await page.getByRole("heading", { name: "Events by action" }).isVisible()).toBe(true);
      await page.unroute(/\/api\/v1\//);
      await page.getByRole("button", { name: "Retry" }).first().click();
      await page
        .getByText("The service does not answer")
        .first()
        .waitFor({ state: "detached", timeout: 60_000 });
    });

    test("a search that is refused for a moment is asked again by itself", async () => {
      const page = await open();
      let refused = 0;
      await page.route(/\/events\/search/, (route) => {
        refused += 1;
        return refused > 6
          ? route.continue()
          : route.fulfill({
              status: 429,
              headers: { "retry-after": "1" },
              json: { title: "Too Many Requests" },
            });
      });
      await page.goto("/explorer");
      await page
        .getByRole("button", { name: /^Open the event of/ })
        .first()
        .waitFor();
      expect(await readTotal(page)).toBeGreaterThan(0);
      expect(refused).toBeGreaterThan(6);
      expect(await page.getByText("Too Many Requests").count()).toBe(0);
      await page.unrouteAll({ behavior: "ignoreErrors" });
    });

    test("parts of an address that mean nothing are named and ignored", async () => {
      const page = await visit("/explorer?span=fortnight&zone=999&is=colour:red");
      const note = page.getByText("The address has parts that this page does not understand");
      await note.waitFor();
      for (const part of ["the span fortnight", "the zone 999", "the filter is=colour:red"])
        await expect.poll(() => note.innerText(), { timeout: 20_000 }).toContain(part);
    });

    test("an address with words that every object has shows its page", async () => {
      for (const [address, heading] of [
        ["/?span=constructor", "Events by action"],
        ["/?span=__proto__", "Events by action"],
        ["/alerts?state=toString&kind=valueOf", "Alerts"],
        ["/rules/101?rule=942100&width=constructor", "Try other settings"],
        ["/explorer?by=constructor&is=constructor:x", "events"],
      ] as const) {
        const page = await visit(address);
        await page.getByRole("heading", { name: heading }).first().waitFor();
      }
    });

    test("the keys open the search, the help, the palette and every page", async () => {
      const page = await visit("/");
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keys" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
      await page.keyboard.press("g");
      await page.keyboard.press("a");
      await page.waitForURL(/\/alerts/);
      await page.keyboard.press("/");
      expect(await page.evaluate("document.activeElement.id")).toBe("search");
      await page.keyboard.type("union select");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/explorer\?q=union\+select/);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.getByRole("textbox", { name: "Command" }).fill("Overview");
      await page.keyboard.press("Enter");
      await expect.poll(() => new URL(page.url()).pathname).toBe("/");
    });

    test("the search shows the event of a log id, in its zone and at its time, and any other id as a text", async () => {
      const { logId, timestamp } = await readNewest(world);
      const searchFor = async (text: string) => {
        const page = await visit("/");
        const search = page.getByLabel("Search events for a text");
        await search.fill(text);
        await search.press("Enter");
        await page.waitForURL(/\/explorer\?/);
        return { page, params: Object.fromEntries(new URL(page.url()).searchParams) };
      };
      const { page } = await vi.waitFor(async () => {
        // A text whose search takes longer than three seconds, as on a busy machine, is shown as a filter.
        const shown = await searchFor(logId);
        expect(shown.params).toMatchObject({
          zone: "101",
          from: String(timestamp),
          to: String(timestamp + 1),
        });
        return shown;
      });
      await page.getByRole("heading", { name: "1 event" }).waitFor();
      expect((await searchFor("0123456789abcdef")).params).toMatchObject({ q: "0123456789abcdef" });
    });

    testAlertsPage(visit, () => world);
    testIncidentPage(visit, () => world);
    testRulePage(visit);
    testVerdictPage(visit, () => world);
    testCoveragePage({ open, visit }, () => world);
    testOperationsPage({ open, visit }, () => world);
    testSession(() => world);

    test("an alert shows its requests with the matched text", async () => {
      const [attack] = await listAttackAlerts(world);
      const page = await visit(`/alerts/${attack?.id}`);
      await page.getByRole("heading", { name: "Sample requests" }).waitFor();
    });

    test("a tab's title counts the alerts that fire", async () => {
      const page = await visit("/alerts");
      await expect.poll(() => page.title()).toMatch(/^\(\d+\) Alerts · Longwatch$/);
    });
  },
);

async function readNewest({ origin, adminKey }: BrowserWorld) {
  const body = JSON.stringify({ from: Date.now() - 3_600_000, to: Date.now(), pageSize: 1 });
  const headers = { AccessKey: adminKey, "content-type": "application/json" };
  const answer = await fetch(`${origin}/api/v1/zones/101/events/search`, { method: "POST", headers, body });
  const { rows } = (await answer.json()) as { rows: [{ logId: string; timestamp: number }] };
  return rows[0];
}

async function listAttackAlerts({ origin, adminKey }: BrowserWorld): Promise<{ readonly id: number }[]> {
  const answer = await fetch(`${origin}/api/v1/alerts?rule=942100`, { headers: { AccessKey: adminKey } });
  return ((await answer.json()) as { items: { id: number }[] }).items;
}

async function readTotal(page: Page): Promise<number> {
  const title = await page.getByRole("heading", { name: /[\d,]+ events$/ }).innerText();
  return Number(title.replace(/\D/g, ""));
}

/** Options of axe for what a theme changes. */
const CONTRAST = { runOnly: ["color-contrast"] };
/** The pages whose other parts a wide screen arranges as no phone does. The phone has every rule of axe on every page. */
const IN_FULL: ReadonlySet<string> = new Set([
  "overview",
  "explorer",
  "alert",
  "rules",
  "coverage",
  "palette",
]);
interface Violation {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly any: readonly { message: string }[] }[];
}

async function runAxe(page: Page, rules: object = {}): Promise<string[]> {
  if (await page.evaluate("globalThis.axe === undefined")) await page.evaluate(axe);
  // Of the rules of WCAG 2.2 AA, axe leaves out the one about the size of targets unless it is named.
  const all = { rules: { "target-size": { enabled: true } } };
  const options = { resultTypes: ["violations"], ...("runOnly" in rules ? rules : all) };
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    `axe.run(document, ${JSON.stringify(options)})`,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 4)
          .map(({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message ?? ""}`)
          .join(" | ")}`,
    );
}
