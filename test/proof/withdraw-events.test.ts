import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { verifyCommand } from "#faces/cli/verify/verify.ts";
import { createRollUpTrendsJob } from "#jobs/detection/roll-up-trends.ts";
import { HOUR_MS } from "#lib/units.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey } from "#model/waf-event.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { storeEvents } from "../db/new-events.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { NOW, type OracleEvent, openEmulator, oracle, type SearchBody } from "../emulator/support.ts";
import { type Ran, runStoreCommand } from "../faces/cli/run-store-command.ts";
import {
  type IngestTest,
  openChangingPlatform,
  openIngest,
  silent,
  storedRows,
} from "../ingest/ingest-support.ts";
import { recordsOf } from "../people/erasure-world.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { countStates, hoursOf, prove } from "./coverage-support.ts";

const database = await shareDatabase();
const coverageCommand = await loadSubject("coverage");

const HOUR = Date.UTC(2026, 10, 20, 12);
const SPAN = ["--from", "2026-11-20T12:00", "--to", "2026-11-20T13:00"];
const ONE = ["--zone", "101", ...SPAN, "--reason", "events of zone 102"];

interface World {
  readonly emulator: Emulator;
  readonly ingest: IngestTest;
  /** Events of zone 102 in HOUR, which zone 101 has stored. */
  readonly foreign: readonly OracleEvent[];
  readonly own: readonly OracleEvent[];
}

/** Sealed hours of zone 101, one of which then gets the events of zone 102, with their records. */
async function openWorld(): Promise<World> {
  const emulator = await openEmulator({ historyHours: 3.5, eventsPerSecond: 0.02, lateShare: 0 });
  const ingest = await openIngest(emulator, { database, openHours: 3 });
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  const foreign = (await oracle(emulator, 102)).filter(
    ({ timestamp }) => timestamp >= HOUR && timestamp < HOUR + HOUR_MS,
  );
  expect(foreign.length).toBeGreaterThan(5);
  const events = foreign.map(({ timestamp, logId, ruleId, ip }) =>
    makeEvent({ occurredAt: timestamp, logId, ruleId, ip, feature: "waf" }),
  );
  await storeEvents(ingest.database, 101, events, { expectNew: false });
  const entries = foreign.map(({ timestamp: occurredAt, logId }) => ({
    occurredAt,
    logIdHash: hashEventKey({ occurredAt, logId }),
    raw: Buffer.from(JSON.stringify({ logId, timestamp: occurredAt, log: "{}" })),
  }));
  await insertRawBlocks(ingest.database.db, 101, await packRawBlocks(entries));
  // They were stored by the clock of the machine.
  await ingest.database.pool.query("update coverage_windows set last_new_at = $1 where starts_at = $2", [
    new Date(emulator.now()),
    new Date(HOUR),
  ]);
  await rollUp(ingest);
  return { emulator, ingest, foreign, own: await oracle(emulator) };
}

async function rollUp({ database }: IngestTest): Promise<void> {
  await createRollUpTrendsJob({ database, log: silent }).run({} as never, new AbortController().signal);
}

function run(
  { emulator, ingest }: Pick<World, "emulator" | "ingest">,
  args: readonly string[],
  { url = emulator.url, now = emulator.now(), command = coverageCommand } = {},
): Promise<Ran> {
  const platform = { EDGE_API_URL: url, EDGE_API_KEY: emulator.accessKey, EDGE_SHIELD_ZONES: "101" };
  const environment = { DATABASE_URL: ingest.database.url, EDGE_REQUESTS_PER_SECOND: "1000", ...platform };
  return runStoreCommand(command, environment, args, { now });
}

const withdraw = (world: World, args: readonly string[], how: Parameters<typeof run>[2] = {}) =>
  run(world, ["withdraw", ...ONE, ...args], how);

async function idsIn({ ingest }: World): Promise<string[]> {
  return (await storedRows(ingest.database)).map(({ log_id }) => log_id).sort();
}

const idsOf = (events: readonly OracleEvent[]) => events.map(({ logId }) => logId).sort();

async function query<Row extends object>({ ingest }: World, text: string): Promise<Row[]> {
  return (await ingest.database.pool.query<Row>(text)).rows;
}

test("events of another zone are removed with their records, and the hour is sealed again without them", async () => {
  const world = await openWorld();
  const { emulator, ingest, foreign, own } = world;
  const before = await idsIn(world);

  const dry = await withdraw(world, ["--all-unshown"]);
  expect(dry).toMatchObject({ code: 0, err: "" });
  expect(dry.out).toContain(
    `zone 101, 2026-11-20 12:00 to 2026-11-20 13:00 UTC: ${foreign.length} events that the platform does not show\n`,
  );
  expect(dry.out).toContain("Nothing was removed. Add --yes to remove these events.");
  expect(await idsIn(world)).toEqual(before);

  const { out, code } = await withdraw(world, ["--all-unshown", "--yes", "--by", "alice"]);
  expect(code).toBe(0);
  expect(out).toContain(`${foreign.length} events and ${foreign.length} records removed`);
  expect(await idsIn(world)).toEqual(idsOf(own.filter(({ timestamp }) => timestamp < NOW + 60_000)));
  expect(await recordsOf(ingest.database, new Set(idsOf(foreign)))).toEqual([]);
  const noted = await query<{ log_id: string; after: string }>(
    world,
    "select log_id, after from event_revisions where field = 'removed' order by log_id",
  );
  expect(noted.map(({ log_id }) => log_id)).toEqual(idsOf(foreign));
  expect(noted[0]?.after).toBe("events of zone 102");
  const audit = await query(
    world,
    "select actor, subject, details from audit_entries where action = 'events.withdrawn'",
  );
  expect(audit).toEqual([
    {
      actor: "alice",
      subject: "zone 101",
      details: {
        from: "2026-11-20T12:00:00.000Z",
        to: "2026-11-20T13:00:00.000Z",
        reason: "events of zone 102",
        events: foreign.length,
        records: foreign.length,
        ids: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    },
  ]);

  await rollUp(ingest);
  emulator.advance(60_000);
  await prove(emulator, ingest);
  emulator.advance(20 * 60_000);
  await prove(emulator, ingest);
  await rollUp(ingest);
  expect(await countStates(ingest)).toMatchObject({ gap: 0 });
  expect((await hoursOf(ingest)).find(({ startsAt }) => startsAt === HOUR)?.state).toBe("sealed");
  const verified = await run(
    world,
    ["--zone", "101", "--from", "2026-11-20T10:00", "--to", "2026-11-20T15:00", "--ids"],
    { command: verifyCommand },
  );
  expect(verified.out).toContain("No differences.\n");
});

test("an event that the platform shows is never removed, whether it is named or not", async () => {
  const world = await openWorld();
  const { emulator, own, foreign } = world;
  const [first, second] = own.filter(({ timestamp }) => timestamp >= HOUR && timestamp < HOUR + HOUR_MS);
  const [alien] = foreign;
  const file = path.join(makeTemporaryFolder("ids"), "ids.txt");
  writeFileSync(file, `${second?.logId}\n\n${alien?.logId}\n`);
  const { out } = await withdraw(world, [
    "--id",
    first?.logId ?? "",
    "--id",
    "no such",
    "--id",
    `@${file}`,
    "--yes",
  ]);
  expect(out).toContain("1 event and 1 record removed");
  expect(out).toContain(`not removed, because the platform shows them: `);
  expect(out).toContain("not stored in this span: no such");
  const left = await idsIn(world);
  expect(left).toEqual(expect.arrayContaining([first?.logId, second?.logId]));
  expect(left).not.toContain(alien?.logId);

  // The search and the counts hide one event, which the list still shows.
  const url = await openChangingPlatform(emulator, (body, asked) =>
    asked.endsWith("/search") ? JSON.stringify(hide(JSON.parse(body) as SearchBody, first)) : body,
  );
  const hidden = await withdraw(world, ["--id", first?.logId ?? "", "--yes"], { url });
  expect(hidden.out).toContain("0 events that the platform does not show");
  expect(hidden.out).toContain(`not removed, because the platform shows them: ${first?.logId}`);
  expect(await idsIn(world)).toEqual(left);
});

/** The answer of a search without one event. Its counts are those of one hour. */
function hide({ rows, groups, ...answer }: SearchBody, event: OracleEvent | undefined): SearchBody {
  const kept = rows?.filter(({ logId }) => logId !== event?.logId) ?? null;
  return {
    ...answer,
    rows: kept,
    total: answer.total - (rows?.length ?? 0) + (kept?.length ?? 0),
    groups:
      groups?.map((group) => {
        const count = group.key["ruleId"] === event?.ruleId ? group.count - 1 : group.count;
        return { ...group, count, sparkline: [count] };
      }) ?? null,
  };
}

test("an answer that shows none of the stored events removes nothing", async () => {
  const world = await openWorld();
  const before = await idsIn(world);
  const empty = await openChangingPlatform(world.emulator, (body, asked) =>
    asked.endsWith("/search")
      ? JSON.stringify({ ...(JSON.parse(body) as object), rows: [], groups: [], total: 0, totalPages: 0 })
      : JSON.stringify({ logs: [], hasMoreData: false, continuationToken: null, startToken: null }),
  );
  for (const which of [["--all-unshown"], ["--id", world.foreign[0]?.logId ?? ""]]) {
    const { code, err } = await withdraw(world, [...which, "--yes"], { url: empty });
    expect(code).toBe(2);
    expect(err).toMatch(/the platform shows none of the \d+ stored events from 2026-11-20 12:00 UTC on/);
  }
  const failing = await openChangingPlatform(world.emulator, () => "{}");
  expect((await withdraw(world, ["--all-unshown", "--yes"], { url: failing })).code).toBe(1);
  expect(await idsIn(world)).toEqual(before);
  expect(await query(world, "select from audit_entries where action = 'events.withdrawn'")).toEqual([]);
});

test("an hour that has left the platform needs ids and --unchecked, and keeps its seal", async () => {
  const world = await openWorld();
  const { ingest, foreign, emulator } = world;
  await prove(emulator, ingest);
  const sealed = await query<{ n: number }>(
    world,
    'update coverage_windows set state = \'sealed\', sealed_at = now(), evidence = \'{"stored":{"count":1,"ids":""}}\' where starts_at = \'2026-11-20 12:00Z\' returning 1 as n',
  );
  expect(sealed).toHaveLength(1);
  const now = HOUR + 80 * HOUR_MS;
  const refused = await withdraw(world, ["--all-unshown", "--yes"], { now });
  expect(refused.code).toBe(2);
  expect(refused.err).toContain("Name the ids and ask for an unchecked removal");
  expect((await withdraw(world, ["--all-unshown", "--unchecked"], { now })).err).toContain(
    "--id must be named for an unchecked removal",
  );
  const named = idsOf(foreign).flatMap((id) => ["--id", id]);
  const { out } = await withdraw(world, [...named, "--unchecked", "--yes"], { now });
  expect(out).toContain(`${foreign.length} events and ${foreign.length} records removed`);
  const verified = await run(
    world,
    ["--zone", "101", "--from", "2026-11-20T12:00", "--to", "2026-11-20T13:00"],
    { command: verifyCommand, now },
  );
  expect(verified.out).toContain("seals             1 sealed hour: no difference\n");
  const [hour] = await query<{ state: string; evidence: { removed: number } }>(
    world,
    "select state, evidence from coverage_windows where starts_at = '2026-11-20 12:00Z'",
  );
  expect(hour).toMatchObject({ state: "sealed", evidence: { removed: foreign.length } });
});

test("a removed event that the platform shows again is stored again, with its record", async () => {
  const world = await openWorld();
  const { emulator, ingest, own } = world;
  const logId = own.find(({ timestamp }) => timestamp >= HOUR)?.logId ?? "";
  const now = HOUR + 80 * HOUR_MS;
  expect((await withdraw(world, ["--id", logId, "--unchecked", "--yes"], { now })).out).toContain(
    "1 event and 1 record removed",
  );
  expect(await idsIn(world)).not.toContain(logId);
  await rollUp(ingest);
  emulator.advance(61 * 60_000);
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  expect(await idsIn(world)).toContain(logId);
  expect(await recordsOf(ingest.database, new Set([logId]))).toHaveLength(1);
});

test("every mistake is named at once, and an archive day with the command that brings it back", async () => {
  const world = await openWorld();
  const typed = ["withdraw", "--from", "x", "--to", "-1h", "--id", "@no-such-file"];
  const { code, err } = await run(world, typed);
  expect(code).toBe(2);
  for (const text of [
    "--zone is missing",
    '--from "x" must be an ISO 8601 time',
    '--id "@no-such-file" must name a file that can be read',
    "--reason is missing",
  ])
    expect(err).toContain(text);
  for (const which of [[], ["--all-unshown", "--id", "a"]])
    expect(await withdraw(world, which)).toMatchObject({
      code: 2,
      err: expect.stringContaining("--id must be given, or --all-unshown, but not both"),
    });
  expect((await withdraw(world, ["--all-unshown"], { now: HOUR + HOUR_MS })).err).toContain(
    "--to must be 2026-11-20 12:00 UTC or earlier: later hours may still get events",
  );
  await query(
    world,
    `insert into archive_files (zone_id, day, kind, path, sha256, format, bytes, rows, hours, sum, first_at, last_at)
     values (101, '2026-11-20', 'events', 'x', repeat('0', 64), 1, 1, 1, array_fill(0, '{24}'), 1, now(), now())`,
  );
  const archived = await withdraw(world, ["--id", "a", "--yes"]);
  expect(archived.code).toBe(2);
  expect(archived.err).toContain("archive restore --zone 101 --day 2026-11-20");
});
