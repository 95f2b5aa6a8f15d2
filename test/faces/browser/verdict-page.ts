import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import type { Database } from "#db/client.ts";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { exclusions } from "#db/schema/alerts.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictClass, type VerdictWord } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { insertSpike } from "../../alerts/insert-spike.ts";
import { EVIDENCE } from "../../alerts/support.ts";
import { settle } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";
import type { Visit } from "./pages.ts";

/** Texts of a request that would run as a script if they became markup. */
const HOSTILE = "1' or '1'='1<img src=x onerror=\"alert(1)\">\u202e";
const URL_OF = "https://shop.example.test";

interface Seeded extends Pick<StoredVerdict, "title" | "for" | "against" | "nextStep" | "who" | "look"> {
  readonly ruleId: string;
  readonly likeliest: VerdictClass;
  readonly path: string;
  readonly matched: string;
  readonly odds: number;
  /** The values of the twelve numbers, in their order. */
  readonly values: readonly (number | null)[];
  readonly counts: readonly [events: number, addresses: number, networks: number, paths: number];
}

const SEEDS: Readonly<Record<VerdictWord, Seeded>> = {
  attack: {
    ruleId: "942190",
    likeliest: "attack",
    look: "half-hour",
    title: "Probably an attack",
    odds: 0.93,
    for: [
      "12 of 12 addresses triggered three or more rules on other paths today.",
      "62 % of 180 requests that were read hold an attack idiom.",
    ],
    against: "In networks that are usual here: 1 of 12 addresses.",
    who: "12 addresses of 9 networks, 11 of them new here",
    nextStep: "Block 198.51.100.0/24 at the edge: it sends 71 % of the events.",
    path: `/item?id=${HOSTILE}`,
    matched: HOSTILE,
    values: [0.54, 0.08, 0.7, 1, 0.4, 0.9, 0.8, 0.02, 0.01, 0.62, 0.1, 0],
    counts: [312, 12, 9, 4],
  },
  misfire: {
    ruleId: "942440",
    likeliest: "misfire",
    look: "six-hours",
    title: "Misfire",
    odds: 0.95,
    for: [
      "In networks that are usual here: 152 of 160 addresses.",
      "64 % of 200 requests that were read have a session.",
    ],
    against: "The requests come from 160 addresses.",
    who: "160 addresses of 41 networks, 148 of them seen here before",
    nextStep:
      "Exclude rule 942440 for ARGS:title of POST /reviews/{n}: it would have silenced 99 % of these events.",
    path: "/reviews/7?from=mail",
    matched: "select a size from the list -- thanks",
    values: [1, 0.95, 0.9, 0.02, 0.3, 1, 0.97, 0.64, 0.7, 0.01, 0.02, 0],
    counts: [412, 160, 41, 3],
  },
  scanner: {
    ruleId: "913110",
    likeliest: "scanner",
    look: "half-hour",
    title: "Scanner",
    odds: 0.88,
    for: [
      "The largest path has 4 % of the events.",
      "1 of 1 address triggered three or more rules elsewhere.",
    ],
    against: null,
    who: "1 address, new here",
    nextStep: "Nothing to do: all 54 events were blocked.",
    path: "/wp-login.php",
    matched: "nikto",
    values: [0, 0, null, 1, 0.9, 0.1, 0.04, null, null, 0.02, 0, 0],
    counts: [54, 1, 1, 50],
  },
  "broken-client": {
    ruleId: "920420",
    likeliest: "broken-client",
    look: "half-hour",
    title: "Broken client",
    odds: 0.9,
    for: ["98 % of the requests are the same request again.", "The largest path has 100 % of the events."],
    against: "None of 174 requests that were read has a session.",
    who: "1 address of a network that is usual here",
    nextStep: "Ask the owner of the client to repeat less: it sends the same request 6 times a minute.",
    path: "/api/v2/sync",
    matched: "text/xml-rpc",
    values: [0, 1, 0.9, 0, 0.1, 1, 1, 0, 0, 0, 0.98, 0],
    counts: [174, 1, 1, 1],
  },
  crawler: {
    ruleId: "942260",
    likeliest: "crawler",
    look: "half-hour",
    title: "Verified crawler",
    odds: 0.86,
    for: ["100 % of the user agents say bot.", "The largest path has 20 % of the events."],
    against: null,
    who: "6 addresses of 1 network, verified",
    nextStep: "Treat it like a misfire: a blocked search engine costs visits.",
    path: "/search?q=where+to+buy",
    matched: "where to buy",
    values: [0.39, 1, 0.2, 0, 0.2, 0.9, 0.2, 0, 0, 0, 0, 1],
    counts: [66, 6, 1, 11],
  },
  unclear: {
    ruleId: "932200",
    likeliest: "misfire",
    look: "half-hour",
    title: "Unclear: attack or misfire",
    odds: 0.58,
    for: ["In networks that are usual here: 5 of 6 addresses."],
    against: "9 % of 22 requests that were read hold an attack idiom.",
    who: "6 addresses of 4 networks, 1 of them new here",
    nextStep: "Look at the matched texts first: 2 of 22 hold an attack idiom.",
    path: "/support/ticket",
    matched: "cat /etc/hosts",
    values: [0.39, 0.83, 0.8, 0.1, 0.3, 1, 0.9, 0.4, 0.3, 0.09, 0.05, 0],
    counts: [22, 6, 4, 1],
  },
};

const CLAUSE = { ruleIds: ["942440"], template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" };

function toVerdict(said: VerdictWord, at: number): StoredVerdict {
  const { ruleId, path, matched, values, counts, ...seeded } = SEEDS[said];
  const [events, addresses, networks, paths] = counts;
  const rest = (1 - seeded.odds) / (VERDICT_CLASSES.length - 1);
  const classes = VERDICT_CLASSES.map((name) => [name, name === seeded.likeliest ? seeded.odds : rest]);
  const features = VERDICT_FEATURES.map((name, index) => {
    const value = values[index] ?? null;
    return [name, { value, adds: value === null ? 0 : Math.round(Math.sin(index + value) * 300) / 100 }];
  });
  const isMissing = values.includes(null);
  return {
    ...seeded,
    said,
    judgedAt: at,
    classes: Object.fromEntries(classes) as StoredVerdict["classes"],
    isLasting: said === "misfire",
    features: Object.fromEntries(features) as StoredVerdict["features"],
    counts: {
      events,
      addresses,
      networks,
      paths,
      blocked: Math.floor(events * 0.9),
      challenged: 0,
      logged: events - Math.floor(events * 0.9),
      other: 0,
      records: isMissing ? 0 : Math.min(events, 200),
    },
    since: at - HOUR_MS,
    missing: isMissing ? ["raw records", "JA4"] : [],
    sample: {
      at: at - MINUTE_MS,
      logId: `sample-${said}`,
      ip: "198.51.100.7",
      method: said === "misfire" ? "POST" : "GET",
      url: `${URL_OF}${path}`,
      ruleId,
      action: "blocked",
      parameter: "ARGS:title",
      matched,
    },
    crawler: said === "crawler" ? "Example Search" : null,
    exclusion:
      said === "misfire"
        ? {
            form: "narrow",
            ruleId,
            clauses: [CLAUSE],
            covered: 0.97,
            events,
            together: [{ ruleId: "942260", parameter: "ARGS:title", share: 0.42 }],
            refusal: null,
          }
        : null,
  };
}

/** Stores a spike of zone 102 with each verdict; raise-alerts makes an alert of each. The misfire's exclusion was followed. */
async function seedVerdicts({ db }: Database): Promise<void> {
  // The end of a minute that is over: the detector has nothing to add to it.
  const at = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const times = { openedAt: new Date(at), lastActiveAt: new Date(at), judgedThrough: new Date(at) };
  // An address of their own: silences of other tests must not mute them.
  const top = { ...EVIDENCE.top, ip: [{ value: "198.51.100.230", count: 30, share: 0.6 }] };
  const [from, to] = [new Date(at).toISOString(), new Date(at).toISOString()];
  const evidence = {
    ...EVIDENCE,
    top,
    from,
    to,
    total: 50,
    sampled: 50,
    firstEventAt: null,
    lastEventAt: null,
  };
  // In one transaction, so that a verdict that is due is stored before a job finds it.
  await db.transaction(async (tx) => {
    for (const said of Object.keys(SEEDS) as VerdictWord[]) {
      const { ruleId } = SEEDS[said];
      const id = await insertSpike(tx, { ...times, zoneId: 102, ruleId, evidence });
      const unclear = { look: "first", title: "Unclear: attack or misfire" } as const;
      const first = { ...toVerdict("unclear", at - 6 * HOUR_MS), ...unclear };
      if (said === "misfire") await storeVerdict(tx, { id, zoneId: 102 }, first);
      // After 30 minutes the service itself has no look for hours.
      await storeVerdict(tx, { id, zoneId: 102 }, toVerdict(said, at));
      if (said !== "misfire") continue;
      const proposedAt = new Date(at);
      const followedAt = new Date(at + 1_000);
      await tx
        .insert(exclusions)
        .values({ zoneId: 102, spikeId: id, key: "seed", clause: CLAUSE, proposedAt, followedAt });
      const before = new Date(at - 9 * DAY_MS);
      const former = { openedAt: before, lastActiveAt: before, judgedThrough: before, closedAt: before };
      await insertSpike(tx, { ...former, zoneId: 102, ruleId, mark: "misfire", markedAt: before });
    }
  });
}

/** The tests of the verdict on an alert's page. */
export function testVerdictPage(visit: Visit, openWorld: () => BrowserWorld): void {
  beforeAll(() => seedVerdicts(openWorld().running.database));

  const openAlert = async (said: VerdictWord): Promise<Page> => {
    const { ruleId } = SEEDS[said];
    const page = await visit(`/alerts?rule=${ruleId}`);
    await page.getByRole("link", { name: new RegExp(`rule ${ruleId}`) }).click();
    await page.waitForURL(/\/alerts\/\d+/);
    await settle(page);
    return page;
  };

  test("an alert's page begins with its verdict, the reasons, and one request as text", async () => {
    const page = await openAlert("attack");
    const panel = page
      .locator("section")
      .filter({ has: page.getByRole("heading", { name: "Probably an attack" }) });
    const text = await panel.innerText();
    for (const said of [
      "odds 93 of 100",
      ...SEEDS.attack.for,
      SEEDS.attack.against,
      SEEDS.attack.nextStep,
      "32 of 312 requests since ",
      "280 blocked, 0 challenged",
      // Text of a request stays text, and what reorders text is spelled out.
      "GET https://shop.example.test/item?id=1' or '1'='1<img src=x onerror=\"alert(1)\">\\u{202e}",
    ])
      expect(text).toContain(said);
    expect(await panel.locator("img").count()).toBe(0);
    expect((await panel.locator("mark").allInnerTexts()).length).toBeGreaterThan(0);
    const headings = await page.getByRole("heading", { level: 2 }).allInnerTexts();
    expect(headings[0]).toBe("Probably an attack");
  });

  test("the numbers and the verdicts of an alert open, with a bar for each number", async () => {
    const page = await openAlert("misfire");
    await page.getByText("The numbers behind it").click();
    const numbers = page.getByRole("table").filter({ hasText: "addresses in usual networks" });
    await expect.poll(() => numbers.getByRole("row").count()).toBe(VERDICT_FEATURES.length + 1);
    await page.getByText("2 verdicts").click();
    const verdicts = page.getByRole("table").filter({ hasText: "six-hours" });
    expect(await verdicts.getByRole("row").allInnerTexts()).toEqual([
      expect.stringMatching(/^time/),
      expect.stringMatching(/^first.*Unclear: attack or misfire.*58 %/s),
      expect.stringMatching(/^six-hours.*Misfire.*95 %/s),
    ]);
  });

  test("one key marks the alert, another one changes the mark, and no key marks while a note is written", async () => {
    const page = await openAlert("unclear");
    const button = (name: string) =>
      page.getByRole("group", { name: "What it was" }).getByRole("button", { name });
    await page.keyboard.press("?");
    await page.getByText("mark the alert as scanner").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("2");
    await page.locator("[aria-pressed=true]").filter({ hasText: "misfire" }).waitFor();
    await button("broken client").click();
    await page.locator("[aria-pressed=true]").filter({ hasText: "broken client" }).waitFor();
    await page.keyboard.press("a");
    await page.getByLabel("Note for the others (may stay empty)").fill("1");
    await page.keyboard.press("1");
    await page.keyboard.press("Escape");
    await settle(page);
    const { rows } = await openWorld().running.database.pool.query(
      "select mark from spikes where rule_id = $1",
      [SEEDS.unclear.ruleId],
    );
    expect(rows).toEqual([{ mark: "broken-client" }]);
  });

  test("a proposed exclusion is replayed by a click, beside the wider forms and the texts to copy", async () => {
    const page = await openAlert("misfire");
    const panel = page
      .locator("section")
      .filter({ has: page.getByRole("heading", { name: "Proposed exclusion" }) });
    await panel.getByText("narrow, covers 97 % of 412 events; Longwatch does not apply it").waitFor();
    await panel.getByText("942260 (42 %)").waitFor();
    await panel.getByRole("button", { name: "Replay 30 days" }).click();
    await expect
      .poll(() => panel.getByRole("row").allInnerTexts())
      .toEqual([
        expect.stringMatching(/^would have silenced\s+events\s+addresses\s+days\s+suspicious/),
        expect.stringMatching(/^this exclusion\s+[\d,]+/),
        // No event of the path is kept, so no host of it is known, and the form for the path is not written.
        expect.stringMatching(/^the rule in the whole zone\s+[\d,]+/),
      ]);
    await panel.getByText("curl, silences the rule").click();
    await panel.getByRole("button", { name: "Copy" }).filter({ visible: true }).first().waitFor();
    await visit(`/rules/102?rule=${SEEDS.misfire.ruleId}`);
    await page.getByText("rule 942440 for ARGS:title of POST /reviews/{n}").waitFor();
    await page.getByRole("button", { name: "Replay 30 days" }).click();
    await page.getByRole("row", { name: /^this exclusion/ }).waitFor();
    await page.getByText(/silent there since .*, \d+ events there today, \d+ suspicious$/).waitFor();
    await page.getByRole("listitem").filter({ hasText: "Misfire" }).first().waitFor();
  });

  test("a misfire shows how it was marked before, and a followed exclusion is in the timeline", async () => {
    const page = await openAlert("misfire");
    await page.getByText(/^You called this a misfire on \d+ \w+\.$/).waitFor();
    await page.getByText("The rule is silent where an exclusion was proposed: ").waitFor();
    await page.getByText("rule 942440 for ARGS:title of POST /reviews/{n}").first().waitFor();
  });
}
