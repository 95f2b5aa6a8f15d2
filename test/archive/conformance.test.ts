import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { createPageCursors } from "#operations/operation.ts";
import { archiveDay, openTestFolder } from "./archive-folder.ts";
import { comparable, difference, readBack } from "./comparable.ts";
import { type MatrixRequest, REQUESTS } from "./request-matrix.ts";
import { type Ask, NOW, openArchive, post, serve } from "./support.ts";

interface Metrics {
  readonly data: {
    readonly totalTriggers: number;
    readonly overviewPastTwentyEightDays: Record<string, Record<string, number>>;
  };
}

async function walk(ask: Ask, day: string): Promise<string[]> {
  const pages: string[] = [];
  let token: string | null = "";
  while (token !== null && pages.length < 100) {
    const answer = await ask(`/shield/event-logs/101/${day}/${encodeURIComponent(token)}`);
    pages.push(comparable(answer, "list"));
    const page = JSON.parse(answer.text) as { hasMoreData: boolean; continuationToken: string };
    token = page.hasMoreData ? page.continuationToken : null;
  }
  return pages;
}

/** The requests whose answers depend on where events are: none of them is refused for its body, its zone or its key. */
const READS_EVENTS = /^(search|export|list): (?!refuses|sent as|zone|key|bytes|.*\bbody\b)/;
/** Groups of a whole day: DuckDB has made them while one of the two days was in its file. */
const GROUPED = /^search: (grouped by|-?\d+ buckets)/;

/** One page of the list on 19 November and three on the 20th. The tests that share it change only where its days are. */
const folder = await openTestFolder();
const { ask, platform, database, emulator } = await openArchive({
  zones: [101],
  eventsPerSecond: 0.05,
  historyHours: 18,
  parts: { files: folder.files },
});

/** What the platform answers: the same each time, because its clock stands. */
const answers = new Map<string, string>();

async function compare({ name, path, init }: MatrixRequest): Promise<string[]> {
  const ours = comparable(readBack(await ask(path, init)), name);
  const theirs = answers.get(name) ?? comparable(await platform(path, init), name);
  answers.set(name, theirs);
  return difference(name, ours, theirs);
}

it("answers every request, and the pages of a whole day token by token, as the platform does, byte for byte, from Postgres and the archive and from the archive alone", {
  timeout: 480_000,
}, async () => {
  for (const archived of ["2026-11-19", "2026-11-20"]) {
    await archiveDay(database, folder, archived);
    const differences: string[] = [];
    for (const request of REQUESTS) {
      const { name } = request;
      // What each side estimates of the time before its history is looked at below.
      if (/^metrics: rule (930130|942100|941100)$/.test(name)) continue;
      if (archived === "2026-11-20" && (!READS_EVENTS.test(name) || GROUPED.test(name))) continue;
      differences.push(...(await compare(request)));
    }
    expect(differences).toEqual([]);
    for (const [day, pages] of [
      ["11-19-2026", 1],
      ["11-20-2026", 3],
    ] as const) {
      const [ours, theirs] = [await walk(ask, day), await walk(platform, day)];
      expect([ours.length, theirs.length]).toEqual([pages, pages]);
      expect(ours.flatMap((page, index) => difference(`page ${index}`, page, theirs[index] ?? ""))).toEqual(
        [],
      );
    }
  }
  expect(REQUESTS.length).toBeGreaterThan(250);
});

it("begins again at the first page with the start token", async () => {
  const path = "/shield/event-logs/101/11-20-2026";
  const first = await ask(path);
  const { startToken } = JSON.parse(first.text) as { startToken: string };
  expect((await ask(`${path}/${startToken}`)).text).toBe(first.text);
});

it("refuses a token of another day, another zone or another archive", async () => {
  const both = await serve(database, emulator, { zoneIds: [101, 7], files: folder.files });
  const page = JSON.parse((await both.ask("/shield/event-logs/101/11-20-2026")).text) as {
    continuationToken: string;
  };
  const token = page.continuationToken;
  const [version, payload = "", tag] = token.split(".");
  const position = JSON.parse(Buffer.from(payload, "base64url").toString()) as (string | number)[];
  // The archives of other databases have other secrets.
  const foreign = createPageCursors(randomBytes(32)).sign("event-logs:101:2026-11-20", position);
  const forged = Buffer.from(JSON.stringify([0, ""])).toString("base64url");
  for (const path of [
    `101/11-19-2026/${token}`,
    `7/11-20-2026/${token}`,
    `101/11-20-2026/${foreign}`,
    `101/11-20-2026/${version}.${forged}.${tag}`,
    `101/11-20-2026/c2.${payload}.${tag}`,
  ]) {
    const answer = await both.ask(`/shield/event-logs/${path}`);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      title: "Bad Request",
      detail: "The continuation token is not valid for this zone and day, or has expired.",
    });
  }
  expect((await both.ask(`/shield/event-logs/101/11-20-2026/${token}`)).status).toBe(200);
});

it("counts the days of its history as the platform does, and nothing before it", {
  timeout: 120_000,
}, async () => {
  // Both rules have some fifteen events on each of two whole days.
  const { ask, platform, database } = await openArchive({
    zones: [101],
    eventsPerSecond: 0.012,
    historyHours: 40,
  });
  // Some minutes are not rolled up yet: what the events say counts.
  await database.pool.query(
    `insert into dirty_buckets (zone_id, rule_id, minute)
     select zone_id, rule_id, starts_at from rule_buckets where width = 60 and random() < 0.3`,
  );
  await database.pool.query("update rule_buckets set total = total + 5, other = other + 5 where width = 60");
  await database.pool.query(
    `update rule_buckets d set total = total + 5 * n, other = other + 5 * n from (
       select m.rule_id, date_trunc('day', m.starts_at) as day, count(*) as n
       from rule_buckets m join dirty_buckets s on s.rule_id = m.rule_id and s.minute = m.starts_at
       where m.width = 60 group by 1, 2) s
     where d.width = 86400 and d.rule_id = s.rule_id and d.starts_at = s.day`,
  );
  for (const rule of ["930130", "942100"]) {
    const path = `/shield/metrics/shield-zone/101/waf-rule/${rule}`;
    const [ours, theirs] = await Promise.all(
      [ask, platform].map(async (side) => JSON.parse((await side(path)).text) as Metrics),
    );
    const days = Object.entries(ours?.data.overviewPastTwentyEightDays ?? {});
    const theirDays = Object.entries(theirs?.data.overviewPastTwentyEightDays ?? {});
    expect(days.map(([day]) => day)).toEqual(theirDays.map(([day]) => day));
    expect(days.slice(-2)).toEqual(theirDays.slice(-2));
    expect(days.slice(-2).every(([, counts]) => (counts["totalTriggers"] ?? 0) > 10)).toBe(true);
    const zeros = { totalTriggers: 0, blockedRequests: 0, loggedRequests: 0, challengedRequests: 0 };
    expect(days.slice(0, 25).every(([, counts]) => JSON.stringify(counts) === JSON.stringify(zeros))).toBe(
      true,
    );
    const sum = days.reduce((total, [, counts]) => total + (counts["totalTriggers"] ?? 0), 0);
    expect(ours?.data.totalTriggers).toBe(sum);
  }
});

it("goes on serving days and windows that the platform has forgotten", async () => {
  const { ask, platform, emulator } = await openArchive({
    zones: [101],
    eventsPerSecond: 0.02,
    historyHours: 2,
  });
  const window = { from: NOW - HOUR_MS, to: NOW };
  const before = {
    list: await ask("/shield/event-logs/101/11-20-2026"),
    search: await ask("/shield/event-logs/101/search", post(window)),
    export: await ask("/shield/event-logs/101/export", post(window)),
  };
  emulator.advance(30 * 24 * HOUR_MS);
  expect((await platform("/shield/event-logs/101/11-20-2026")).status).toBe(401);
  expect((await platform("/shield/event-logs/101/search", post(window))).status).toBe(400);
  expect((await ask("/shield/event-logs/101/11-20-2026")).text).toBe(before.list.text);
  expect((await ask("/shield/event-logs/101/search", post(window))).text).toBe(before.search.text);
  expect((await ask("/shield/event-logs/101/export", post(window))).text).toBe(before.export.text);
});

it("refuses days and windows outside its retention in the platform's form", async () => {
  const { ask } = await serve(database, emulator, { retentionDays: 10, files: folder.files });
  for (const day of ["11-21-2026", "11-09-2026", "01-01-1999"]) {
    const path = `/shield/event-logs/101/${day}`;
    const [ours, theirs] = [await ask(path), await platform(path)];
    const message = /"message":"[^"]*"/;
    expect(`${ours.status} ${ours.text.replace(message, "")}`).toBe(
      `${theirs.status} ${theirs.text.replace(message, "")}`,
    );
    expect(ours.text).toContain("You can only view the past 10 days of Event Logs.");
  }
  expect((await ask("/shield/event-logs/101/11-10-2026")).status).toBe(200);
  const old = post({ from: 1, to: NOW - 11 * 24 * HOUR_MS });
  const [ours, theirs] = await Promise.all(
    [ask, platform].map((side) => side("/shield/event-logs/101/search", old)),
  );
  expect(ours?.status).toBe(400);
  expect(ours?.text).toBe(theirs?.text.replaceAll("the last 72 hours", "the last 10 days"));
});
