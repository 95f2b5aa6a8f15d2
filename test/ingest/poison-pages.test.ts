import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import { expectedRows, openChangingPlatform, openIngest, storedRows, ZONE } from "./ingest-support.ts";

const database = await shareDatabase();
const AT = NOW - 1;

interface Poison {
  readonly name: string;
  readonly raw: string;
  readonly reason: string | RegExp;
}

const ANYWHERE: readonly Poison[] = [
  { name: "null", raw: "null", reason: "unreadable: entry: invalid_type" },
  { name: "a string", raw: `"text"`, reason: "unreadable: entry: invalid_type" },
  { name: "a number", raw: "17", reason: "unreadable: entry: invalid_type" },
  { name: "a list", raw: `[{"logId":"x"}]`, reason: "unreadable: entry: invalid_type" },
  { name: "an empty object", raw: "{}", reason: "unreadable: logId: invalid_union; timestamp: invalid_type" },
  { name: "no id", raw: `{"timestamp":${AT}}`, reason: "unreadable: logId: invalid_union" },
  { name: "an id that is null", raw: `{"logId":null,"timestamp":${AT}}`, reason: /^unreadable: logId/ },
  { name: "an empty id", raw: `{"logId":"","timestamp":${AT}}`, reason: /^unreadable: logId/ },
  {
    name: "an id that is an object",
    raw: `{"logId":{"a":1},"timestamp":${AT}}`,
    reason: /^unreadable: logId/,
  },
  {
    name: "an id with NUL",
    raw: `{"logId":"a\\u0000","timestamp":${AT}}`,
    reason: /^logId: .*cannot be stored/,
  },
  { name: "an id with half a character", raw: `{"logId":"a\\udc00","timestamp":${AT}}`, reason: /^logId: / },
  {
    name: "an id too long for a key",
    raw: `{"logId":"${"l".repeat(201)}","timestamp":${AT}}`,
    reason: /^logId: longer/,
  },
  { name: "no time", raw: `{"logId":"t1"}`, reason: "unreadable: timestamp: invalid_type" },
  { name: "a time as text", raw: `{"logId":"t2","timestamp":"${AT}"}`, reason: /^unreadable: timestamp/ },
  {
    name: "a time as a date",
    raw: `{"logId":"t3","timestamp":"2026-11-20T00:00:00Z"}`,
    reason: /^unreadable: timestamp/,
  },
  {
    name: "a time in seconds, long ago",
    raw: `{"logId":"t4","timestamp":${Math.floor((AT - 30 * DAY_MS) / 1_000)}.5}`,
    reason: /^timestamp: before/,
  },
  {
    name: "a time beyond 2^53",
    raw: `{"logId":"t6","timestamp":99999999999999999999}`,
    reason: /^unreadable: timestamp/,
  },
  { name: "a time before 1970", raw: `{"logId":"t7","timestamp":-5}`, reason: /^unreadable: timestamp/ },
  {
    name: "a time long ago",
    raw: `{"logId":"t8","timestamp":${AT - 30 * DAY_MS}}`,
    reason: /^timestamp: before/,
  },
  {
    name: "a time far ahead",
    raw: `{"logId":"t9","timestamp":4102444800000}`,
    reason: /^timestamp: not before/,
  },
];

const IN_LIST: readonly Poison[] = [
  {
    name: "labels that are a list",
    raw: `{"logId":"l2","timestamp":${AT},"labels":[]}`,
    reason: "unreadable: labels: invalid_type",
  },
  {
    name: "a label that is an object",
    raw: `{"logId":"l3","timestamp":${AT},"labels":{"asn":{}}}`,
    reason: /^unreadable: labels\.asn/,
  },
];

const IN_SEARCH: readonly Poison[] = [
  {
    name: "fields that are text",
    raw: `{"logId":"f1","timestamp":${AT},"fields":"ip=1"}`,
    reason: "unreadable: fields: invalid_type",
  },
  {
    name: "a field that is a list",
    raw: `{"logId":"f2","timestamp":${AT},"fields":{"ip":["1"]}}`,
    reason: /^unreadable: fields\.ip/,
  },
];

interface SetAside {
  readonly raw: Buffer;
  readonly reason: string;
  readonly route: string;
  readonly day: string | null;
}

/** Whether a search's window holds the poison's time: shown in another window, it would be the platform's contradiction. */
function holdsPoison(asked: string): boolean {
  const { from, to } = JSON.parse(asked) as { from: number; to: number };
  return from <= AT && AT < to;
}

/** The totals of a search, with the poison counted. */
function countPoison(body: string, poison: readonly Poison[]): string {
  return body.replace(/"total":(\d+),"totalPages":\d+/, (_, total) => {
    const all = Number(total) + poison.length;
    return `"total":${all},"totalPages":${Math.ceil(all / 500)}`;
  });
}

async function openPoisoned(pick: (path: string) => { member: string; poison: readonly Poison[] } | null) {
  const emulator = await openEmulator({ zones: [ZONE], historyHours: 1, eventsPerSecond: 0.05 });
  let round = 0;
  const url = await openChangingPlatform(emulator, (original, path, asked) => {
    const picked = pick(path);
    if (picked === null || (picked.member === "rows" && !holdsPoison(asked))) return original;
    const body = picked.member === "rows" ? countPoison(original, picked.poison) : original;
    const raws = picked.poison.map(({ raw }) => raw);
    // Each round in another place, so that the page is not known by its bytes.
    const ordered = round++ % 2 === 0 ? raws : [...raws].reverse();
    const [opened, first] = [`"${picked.member}":[`, ordered.join(" ,\n")];
    return body.replace(`${opened}]`, `${opened}${first}]`).replace(`${opened}{`, `${opened}${first},{`);
  });
  const ingest = await openIngest(emulator, { database, url, openHours: 1 });
  const setAside = async () => {
    const { rows } = await ingest.database.pool.query<SetAside>(
      "select raw, reason, route, day::text from quarantined_entries order by id",
    );
    return rows;
  };
  return { emulator, ingest, setAside };
}

function expectSetAside(rows: readonly SetAside[], poison: readonly Poison[], route: string): void {
  const byRaw = new Map(rows.map((row) => [row.raw.toString(), row]));
  expect([...byRaw.keys()].sort()).toEqual(poison.map(({ raw }) => raw).sort());
  expect(rows).toHaveLength(poison.length);
  const isAsExpected = ({ raw, reason }: Poison) => {
    const row = byRaw.get(raw);
    return (
      row?.route === route && (typeof reason === "string" ? row.reason === reason : reason.test(row.reason))
    );
  };
  expect(
    poison.filter((one) => !isAsExpected(one)).map(({ name, raw }) => [name, byRaw.get(raw)?.reason]),
  ).toEqual([]);
}

test("F51: every kind of poison in the list is set aside with its bytes and reason, and its page is stored", async () => {
  const poison = [...ANYWHERE, ...IN_LIST];
  const { emulator, ingest, setAside } = await openPoisoned((path) =>
    path.includes("/11-20-2026") ? { member: "logs", poison } : null,
  );
  await ingest.walk();
  expectSetAside(await setAside(), poison, "list");
  expect(new Set((await setAside()).map(({ day }) => day))).toEqual(new Set(["2026-11-20"]));
  expect(ingest.pages.reduce((sum, { quarantined }) => sum + quarantined, 0)).toBe(poison.length);

  emulator.advance(16 * MINUTE_MS);
  ingest.pages.length = 0;
  await ingest.walk();
  expect(ingest.pages.some(({ entries }) => entries > 100)).toBe(true);
  expect(ingest.pages.reduce((sum, { quarantined }) => sum + quarantined, 0)).toBe(0);
  expectSetAside(await setAside(), poison, "list");
  const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
});

test("F51: every kind of poison in a search is set aside once, and what it stands among is stored", async () => {
  const poison = [...ANYWHERE, ...IN_SEARCH];
  const { emulator, ingest, setAside } = await openPoisoned((path) =>
    path.endsWith("/search") ? { member: "rows", poison } : null,
  );
  await ingest.poll();
  expectSetAside(await setAside(), poison, "search");
  expect(new Set((await setAside()).map(({ day }) => day))).toEqual(new Set([null]));
  expect(ingest.pages.reduce((sum, { quarantined }) => sum + quarantined, 0)).toBe(poison.length);
  const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
});

test("poison that both routes show is one row, and belongs to its zone", async () => {
  const { ingest, setAside } = await openPoisoned((path) => ({
    member: path.endsWith("/search") ? "rows" : "logs",
    poison: ANYWHERE,
  }));
  await ingest.poll();
  await ingest.walk();
  expectSetAside(await setAside(), ANYWHERE, "search");
  const { rows } = await ingest.database.pool.query("select distinct zone_id from quarantined_entries");
  expect(rows).toEqual([{ zone_id: ZONE }]);
});

test("reasons name members and rules, never what the visitor wrote", async () => {
  const raw = `{"logId":{"<script>alert(1)</script>":1},"timestamp":"'; drop table x; --","labels":{"asn":["\\u001b[31m"]}}`;
  const { ingest, setAside } = await openPoisoned((path) =>
    path.includes("/11-20-2026") ? { member: "logs", poison: [{ name: "", raw, reason: "" }] } : null,
  );
  await ingest.walk();
  expect((await setAside()).map(({ reason }) => reason)).toEqual([
    "unreadable: logId: invalid_union; timestamp: invalid_type; labels.asn: invalid_union",
  ]);
});
