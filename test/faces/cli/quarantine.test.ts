import { beforeEach, expect, test } from "vitest";
import { loadSubject } from "#faces/cli/commands.ts";
import { shareDatabase } from "../../db/migrated-database.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { testBothWays } from "./both-ways.ts";
import { insertHours, NOW, SEALED } from "./coverage-world.ts";

const quarantineCommand = await loadSubject("quarantine");
const HOSTILE = `{"logId":{"\u001b[2J\u202e":1},"timestamp":${NOW - 1},"log":"from 203.0.113.7"}`;
const READABLE = `{"logId":"a","timestamp":${NOW - 60_000}.25,"log":"{}","labels":{"ruleId":"942100"}}`;

const database = await shareDatabase();

beforeEach(async () => {
  await insertHours(database, NOW - (NOW % 3_600_000), 1, SEALED, 101);
  await insertHours(database, NOW - (NOW % 3_600_000), 1, SEALED, 102);
});

async function insert(raw: string, { zone = 101, isHeld = false } = {}): Promise<void> {
  await database.pool.query(
    `insert into quarantined_entries (zone_id, route, reason, raw, is_held, received_at)
     values ($1, 'list', $2, $3, $4, $5)`,
    [zone, "unreadable: log\u001b: invalid_union", Buffer.from(raw), isHeld, new Date(NOW)],
  );
}

const testWays = testBothWays(quarantineCommand, () => ({ database, now: NOW }));

testWays("entries are listed with their reasons, newest first, harmless to a terminal", async ({ run }) => {
  expect((await run("list")).out).toBe("No entry is in quarantine.\n");
  await insert(HOSTILE);
  await insert(READABLE, { zone: 102 });
  const { code, out } = await run("list");
  expect(code).toBe(0);
  expect(out.replace(/ +/g, " ").split("\n").slice(1, 3)).toEqual([
    `#2 102 2026-11-20 15:10 list ${READABLE.length} unreadable: log\\u{1b}: invalid_union`,
    `#1 101 2026-11-20 15:10 list ${HOSTILE.length + 2} unreadable: log\\u{1b}: invalid_union`,
  ]);
  expect((await run("list", "--zone", "102")).out).not.toContain("#1 ");
  const page = JSON.parse((await run("list", "--limit", "1", "--json")).out);
  expect(page).toMatchObject({ items: [{ id: 2 }], next: expect.any(String) as string });
  expect((await run("list", "--after", page.next)).out).toContain("#1 ");
});

testWays.both("an entry is shown with its text, and as bytes for a file", async ({ run }) => {
  await insert(HOSTILE);
  const { out } = await run("show", "#1");
  expect(out).toContain("entry #1 of zone 101, received 2026-11-20 15:10 UTC from the list");
  expect(out).toContain(String.raw`{"logId":{"\u{1b}[2J\u{202e}":1}`);
  const whole = JSON.parse((await run("show", "1", "--whole", "--json")).out);
  expect(Buffer.from(whole.base64, "base64").toString()).toBe(HOSTILE);
});

testWays("a long text is cut, and says how to get the rest", async ({ run }) => {
  await insert(`"${"é".repeat(5_000)}"`);
  const { out } = await run("show", "1");
  expect(out).toContain("é".repeat(4_095));
  expect(out).not.toContain("é".repeat(4_096));
  expect(out).toContain("quarantine show 1 --whole --json");
});

testWays("nobody sees an entry that may contain an erased address", async ({ run }) => {
  await insert(HOSTILE, { isHeld: true });
  const { out } = await run("show", "1", "--whole", "--json");
  expect(JSON.parse(out)).toMatchObject({ isHeld: true, text: null, base64: null });
  expect((await run("retry", "1")).err).toContain("waits for the pseudonym key");
});

testWays.both("retry stores what can be read now, once, and names what it keeps", async ({ run, by }) => {
  await insert(HOSTILE);
  await insert(READABLE);
  expect(await run("retry", "--zone", "101", ...by("alice"))).toEqual({
    code: 0,
    err: "",
    out: "1 entry stored, 1 kept\n  #1: unreadable: entry: invalid_type\n",
  });
  const { rows } = await database.pool.query("select log_id, rule_id from waf_events");
  expect(rows).toEqual([{ log_id: "a", rule_id: "942100" }]);
  const { rows: noted } = await database.pool.query(
    "select actor, action, subject, details from audit_entries where action = 'quarantine.retried'",
  );
  expect(noted).toEqual([
    {
      actor: expect.stringContaining("alice") as string,
      action: "quarantine.retried",
      subject: "zone 101",
      details: { stored: 1, first: 2, last: 2 },
    },
  ]);
  const again = await run("retry", "2");
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("There is no entry 2 in quarantine")]);
});

testWays("a mistake names field, value and rule", async ({ run }) => {
  for (const [args, named] of [
    [["retry"], "<ids> must be given, or zone, but not both"],
    [["retry", "1", "--zone", "101"], "<ids> must be given, or zone, but not both"],
    [["retry", "x"], '<ids> "x" must be the number of an entry'],
    [["retry", "--zone", "999"], '--zone "999" must be a shield zone'],
    [["show", "-1"], "<id>"],
    [["list", "--zone", "999"], '--zone "999" must be a shield zone'],
  ] as const) {
    const { code, err } = await run(...args);
    expect([code, err]).toEqual([expect.toSatisfy((one: number) => one > 0), expect.stringContaining(named)]);
  }
});

test("a key sees the entries of its zones, a masked key no text, and a reader reads nothing again", async () => {
  await insert(HOSTILE);
  await insert(READABLE, { zone: 102 });
  const { url } = await startArchive(database.url, {}, { clock: () => NOW });
  const ask = async (path: string, key: string, body?: object) => {
    const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const headers = { AccessKey: key, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const answer = await fetch(`${url}/api/v1/quarantine${path}`, { ...sent, headers });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const own = (await makeKey(database, "operator", { zoneIds: [102] })).key;
  expect((await ask("", own)).body["items"]).toMatchObject([{ id: 2, zoneId: 102 }]);
  expect((await ask("?zone=101", own)).status).toBe(403);
  expect((await ask("/1", own)).status).toBe(404);
  expect((await ask("/retry", own, { ids: [2, 1] })).status).toBe(404);
  expect((await ask("/retry", own, { zone: 101 })).status).toBe(403);
  const masked = (await makeKey(database, "reader", { isMasked: true })).key;
  expect((await ask("/1?whole=true", masked)).body).toMatchObject({ id: 1, text: null, base64: null });
  expect((await ask("/retry", masked, { zone: 101 })).status).toBe(403);
  expect((await ask("/retry", own, { ids: [2] })).body).toEqual({ stored: 1, kept: 0, reasons: [] });
});
