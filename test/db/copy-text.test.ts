import fc from "fast-check";
import { from as copyFrom } from "pg-copy-streams";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type Database } from "#db/client.ts";
import { createTimeWriter, toCopyField } from "#db/postgres/copy.ts";
import { createTestDatabase } from "../support/database.ts";

let database: Database;
let drop: () => Promise<void>;

beforeAll(async () => {
  const empty = await createTestDatabase();
  database = createDatabase({
    url: empty.url,
    max: 1,
    applicationName: "longwatch test",
    onError: () => undefined,
  });
  await database.pool.query("create table copied (n integer primary key, a text, b text)");
  drop = async () => {
    await database.close();
    await empty.drop();
  };
});

afterAll(() => drop());

async function roundTrip(rows: readonly (readonly [string | null, string | null])[]) {
  const client = await database.pool.connect();
  try {
    await client.query("truncate copied");
    const stream = client.query(copyFrom("copy copied (n, a, b) from stdin"));
    const lines = rows.map(([a, b], n) => `${toCopyField(n)}\t${toCopyField(a)}\t${toCopyField(b)}\n`);
    await new Promise<void>((resolve, reject) => {
      stream.on("error", reject).on("finish", resolve);
      stream.end(lines.join(""));
    });
    const read = await client.query<{ a: string | null; b: string | null }>(
      "select a, b from copied order by n",
    );
    return read.rows.map(({ a, b }) => [a, b]);
  } finally {
    client.release();
  }
}

/** Any text Postgres can hold, thick with what COPY's format gives a meaning. */
const special = fc.constantFrom(
  "\\",
  "\n",
  "\r",
  "\t",
  "\b",
  "\f",
  "\v",
  "\\N",
  "\\.",
  "\\.\n",
  "N",
  "",
  "'",
  '"',
  "\\x41",
  "\\101",
  "\u2028",
);
const storable = fc
  .array(fc.oneof(special, fc.string({ unit: "binary", maxLength: 8 })), { maxLength: 10 })
  .map((parts) => parts.join("").replaceAll("\0", "").toWellFormed());

test("any text that can be stored comes out of COPY as it went in, and null stays apart from every text", async () => {
  const value = fc.option(storable);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 60 }), async (rows) => {
      expect(await roundTrip(rows)).toEqual(rows);
    }),
    { numRuns: 80 },
  );
});

test("half a character is stored as U+FFFD, as everywhere else", async () => {
  expect(await roundTrip([["a\ud800b", "\udc00"]])).toEqual([["a\uFFFDb", "\uFFFD"]]);
});

test("a text of a megabyte of backslashes fits", async () => {
  const long = "\\".repeat(1_000_000);
  expect(await roundTrip([[long, null]])).toEqual([[long, null]]);
});

test("a time is copied to the millisecond, whatever the session's time zone", async () => {
  const client = await database.pool.connect();
  const toTime = createTimeWriter();
  try {
    await client.query("set time zone 'Pacific/Chatham'");
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) }), async (at) => {
        const { rows } = await client.query<{ ms: number }>(
          "select (extract(epoch from $1::text::timestamptz(3)) * 1000)::float8 as ms",
          [toTime(at)],
        );
        expect(rows[0]?.ms).toBe(at);
      }),
      { numRuns: 50 },
    );
  } finally {
    await client.query("reset time zone");
    client.release();
  }
});
