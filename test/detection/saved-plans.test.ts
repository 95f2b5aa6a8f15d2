import { expect, test } from "vitest";
import { loadSubject } from "#faces/cli/commands.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { packFacts } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { openArchiveWorld } from "../archive/files/archive-world.ts";
import { testBothWays } from "../faces/cli/both-ways.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";
import { makeEvent } from "./trend-support.ts";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const TODAY = Date.parse("2026-11-28");
const NOTHING = { hasSession: false, hasOwnReferer: false, hasIdiom: false, isTool: false, hasBody: null };
const VISITOR = packFacts({ ...NOTHING, hasSession: true, hasOwnReferer: true });
const HOSTILE = packFacts({ ...NOTHING, hasIdiom: true });

const world = await openArchiveWorld();
let ids = 0;

function send(day: number, path: string, facts: number, ruleId: string): WafEvent {
  ids += 1;
  return makeEvent({
    occurredAt: TODAY - day * DAY_MS + HOUR_MS + ids,
    logId: `e${ids}`,
    requestId: `r${ids}`,
    ip: `203.0.113.${ids % 250}`,
    url: `https://shop.example.test${path}`,
    ua: "Mozilla/5.0 (X11) Chrome/140.0",
    action: "log",
    feature: "waf",
    facts,
    ruleId,
  });
}

/** Only attacks match 942100, two a day. Attacks match 941100 five times a day, and a visitor every second day, on one path. */
const days = Array.from({ length: 28 }, (_, day) => day);
await world.store(
  days.flatMap((day) => [
    send(day, "/a", HOSTILE, "942100"),
    send(day, "/b", HOSTILE, "942100"),
    ...Array.from({ length: 5 }, () => send(day, "/x", HOSTILE, "941100")),
    ...(day % 2 === 0 ? [send(day, "/checkout", VISITOR, "941100")] : []),
  ]),
  { hasRecord: () => false },
);

interface Saved {
  readonly id: number;
  readonly name: string;
  readonly block: readonly string[];
  readonly exclusions: readonly object[];
  readonly promised: readonly object[];
  readonly judged: object;
}

const testWays = testBothWays(await loadSubject("review"), () => ({ database: world.database, now: NOW }));
const audited = async () =>
  (
    await world.database.pool.query(
      "select actor, action, subject, details from audit_entries order by id desc limit 1",
    )
  ).rows;

testWays.both(
  "a plan is saved with what it promises, listed, compared with another and with the plan of now, and deleted",
  async ({ run, by }) => {
    await world.database.pool.query("truncate review_plans restart identity");
    const save = async (...args: string[]) => {
      const { out, err } = await run("save", "--zone", "101", "--json", ...args, ...by("alice"));
      expect(err).toBe("");
      return JSON.parse(out) as Saved;
    };
    const first = await save("--name", "First switch", "--note", "with the shop");
    expect(first).toMatchObject({
      name: "First switch",
      note: "with the shop",
      createdBy: "alice",
      block: ["941100", "942100"],
      exclusions: [{ rule: "941100", path: "/checkout" }],
      promised: [
        { rule: "941100", visitors: 0, worst: 0 },
        { rule: "942100", visitors: 0, worst: 0 },
      ],
      learned: { from: "2026-10-30", to: "2026-11-21", days: 21 },
      judged: { from: "2026-11-22", to: "2026-11-28", days: 7 },
      followedSince: null,
      drift: [],
    });
    expect(await audited()).toMatchObject([
      {
        actor: expect.stringContaining("alice") as string,
        action: "review-plan.saved",
        subject: `review plan ${first.id}`,
        details: { zoneId: 101, name: "First switch", blocks: 2 },
      },
    ]);
    // Without its exclusion, the rule stops a visitor every second day.
    const second = await save("--name", "Everything", "--block", "941100", "--log", "942100");
    expect(second.block).toEqual(["941100"]);
    expect(second.promised).toEqual([{ rule: "941100", visitors: 4, worst: 1 }]);

    const { out: listed } = await run("list", "--zone", "101");
    expect(listed).toMatch(/#2 +101 +Everything .*\n.*#1 +101 +First switch /);

    const compared = JSON.parse((await run("compare", "1", "--with", "2", "--json")).out) as object;
    expect(compared).toMatchObject({
      first: { plan: 1, blocks: 2, totals: { hostile: { all: 49, stops: 49 }, visitor: { stops: 0 } } },
      second: { plan: 2, blocks: 1, totals: { hostile: { stops: 35 }, visitor: { stops: 4 }, worstDay: 1 } },
      items: [
        { rule: "941100", first: "blocks, not on /checkout", second: "blocks" },
        { rule: "942100", first: "blocks", second: "logs" },
      ],
    });
    const { out: withNow } = await run("compare", "1");
    expect(withNow).toContain("Both do the same with every rule.");
    expect(withNow).toContain(
      "Plan of now: 2 rules to block; stops 49 of 49 hostile requests, 0 of visitors",
    );

    expect((await run("delete", "1", ...by("alice"))).out).toBe("plan #1 is deleted.\n");
    expect(await audited()).toMatchObject([{ action: "review-plan.deleted", subject: "review plan 1" }]);
    expect((await run("list", "--zone", "101")).out).not.toContain("First switch");
    for (const args of [
      ["delete", "1"],
      ["compare", "1"],
      ["compare", "2", "--with", "1"],
    ])
      expect(await run(...args, ...(args[0] === "delete" ? by("alice") : []))).toMatchObject({
        code: 1,
        err: expect.stringContaining("There is no saved plan 1") as string,
      });
  },
);

test("a key that may only read saves and deletes no plan, and one of another zone sees none", async () => {
  await world.database.pool.query("truncate review_plans restart identity");
  const { url } = await startArchive(world.database.url, {}, { clock: () => NOW });
  const ask = async (
    role: "reader" | "operator",
    path: string,
    init: RequestInit,
    zoneIds: number[] | null = null,
  ) => {
    const { key } = await makeKey(world.database, role, zoneIds === null ? {} : { zoneIds });
    const headers = { AccessKey: key, "content-type": "application/json" };
    return fetch(`${url}/api/v1/review/plans${path}`, { ...init, headers });
  };
  const body = JSON.stringify({ zone: 101, name: "A" });
  expect((await ask("reader", "", { method: "POST", body })).status).toBe(403);
  expect((await ask("operator", "", { method: "POST", body }, [102])).status).toBe(403);
  const saved = await ask("operator", "", { method: "POST", body }, [101]);
  expect(saved.status).toBe(201);
  const { id } = (await saved.json()) as Saved;
  expect((await ask("reader", `/${id}`, { method: "DELETE" })).status).toBe(403);
  expect((await ask("operator", `/${id}`, { method: "DELETE" }, [102])).status).toBe(404);
  expect((await ask("reader", `/${id}/compare`, {}, [102])).status).toBe(404);
  expect(await (await ask("reader", "", {}, [102])).json()).toEqual({ items: [], next: null });
});
