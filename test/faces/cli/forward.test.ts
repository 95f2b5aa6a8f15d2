import { writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { DAY_START, ZONE } from "../../archive/files/archive-world.ts";
import { openForwardWorld } from "../../delivery/forwarding/forward-world.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { ask } from "../http/api/api-world.ts";
import { SERVICE } from "../http/default-service.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { testBothWays, type Way } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";

const OTHER = 102;
const NOW = DAY_START + 30 * HOUR_MS;
const world = await openForwardWorld();
const { database, receiver } = world;
const { pool } = database;
const folder = makeTemporaryFolder("forward");
const file = path.join(folder, "longwatch.yaml");
writeFileSync(
  file,
  `forward:
  siem: { kind: webhook, url_env: SIEM_URL, secrets_env: [SIEM_SECRET], start: all }
  files: { kind: file, folder: "${folder}", zones: [${OTHER}], where: ["ip:eq:203.0.113.7"], format: ocsf }
`,
);
const SETTINGS = {
  LONGWATCH_CONFIG: file,
  SIEM_URL: "https://siem.example/events?token=canary",
  SIEM_SECRET: `whsec_${Buffer.alloc(32).toString("base64")}`,
};

const testForward = testBothWays(await loadSubject("forward"), () => ({ database, now: NOW }), {}, SETTINGS);
let way: Way;
const run: Way["run"] = (...args) => way.run(...args);
const json = async <T>(...args: string[]) => JSON.parse((await run(...args, "--json")).out) as T;

beforeEach(async () => {
  await pool.query(`truncate waf_events, raw_blocks, rule_buckets, dirty_buckets, coverage_windows, changed_minutes,
    forward_cursors, forward_destinations, forward_hours, forward_receipts, forward_refusals cascade`);
  await clearAudit(database);
  receiver.stored.clear();
  receiver.next.length = 0;
  world.setNow(NOW);
});

const event = (minute: number, logId: string) =>
  makeEvent({ occurredAt: DAY_START + minute * MINUTE_MS, logId });

const refuse: (typeof receiver.next)[number] = (lines, response, store) => {
  if (lines.some((line) => line.includes('"bad"')))
    response.writeHead(400).end("field ip: 203.0.113.7 \u001b[2J");
  else {
    store();
    response.writeHead(204).end();
  }
};

/** Forwards three events of two hours, of which the receiver refuses one. */
async function forwardThree(): Promise<void> {
  await world.store([event(5, "a"), event(6, "bad"), event(65, "c")]);
  receiver.next.push(...Array.from({ length: 4 }, () => refuse));
  await world.run();
}

async function audited() {
  const { rows } = await pool.query(
    "select action, subject, details from audit_entries where action <> 'key.created' order by id",
  );
  return rows;
}

describe("forward status", () => {
  testForward(
    "says how many sealed hours have arrived, and counts an hour without events as arrived",
    async (given) => {
      way = given;
      await forwardThree();
      const { code, err, out } = await run("status");
      expect({ code, err }).toEqual({ code: 3, err: "" });
      expect(out).toContain(
        "siem   webhook, event   works\nevery sealed hour has arrived: 24 of 24\nlast ack",
      );
      expect(out).toMatch(/\nzone 101 +2025-10-15 00:00 +24 +24 +0 +0 +1 +0 *\n/);
      expect(out).toContain("files   file, ocsf   waiting\nevery sealed hour has arrived: 0 of 0\nlast ack");
      expect(out).toMatch(
        /never\nan event is acknowledged when it is on the disk\nonly events with ip:eq:203\.0\.113\.7\nZONE .*\nzone 102 +not begun /,
      );
      expect(out).not.toContain("canary");
    },
  );

  testForward("says since when a destination fails, why, and when it is tried next", async (given) => {
    way = given;
    await world.store([event(5, "a")]);
    receiver.next.push((_lines, response) => response.writeHead(401).end("no \u001b[2J token"));
    await world.run();
    const { code, out } = await run("status");
    expect(code).toBe(3);
    expect(out).toContain("siem   webhook, event   refused\n23 of 24 sealed hours have arrived\n");
    expect(out).toMatch(/\nfailing since 2\S+ \S+ UTC: .*401.*\nnext attempt: 2\S+ \S+ UTC\n/);
    expect(out).toMatch(/\nzone 101 +2025-10-15 00:00 +24 +23 +1 +0 +0 +1 +2026-11-18 00:00\n/);
    expect(out).not.toContain("\u001b");
    await run("retry", "siem");
    await world.run();
    const { items } = await json<{ items: { name: string; state: string; zones: object[] }[] }>("status");
    expect(items[1]).toMatchObject({ name: "siem", state: "works", failingSince: null, lastError: null });
    const arrived = { zoneId: ZONE, decided: 24, arrived: 24, open: 0, waitingEvents: 0 };
    expect(items[1]?.zones[0]).toMatchObject(arrived);
  });

  testForward("does not call an hour arrived while a late event of it waits", async (given) => {
    way = given;
    await world.store([event(5, "a")]);
    await world.run();
    await world.store([event(7, "late")]);
    expect((await run("status")).out).toContain("23 of 24 sealed hours have arrived");
    await world.run();
    expect((await run("status")).out).toContain("every sealed hour has arrived: 24 of 24");
  });

  testForward(
    "says that nothing is configured, and still lists a destination that was used",
    async (given) => {
      way = given;
      await pool.query("insert into forward_destinations (destination, seen_at) values ('gone', now())");
      const { code, out } = await run("status");
      expect(code).toBe(0);
      expect(out).toContain("gone   not configured   waiting\n");
    },
  );
});

describe("forward hours", () => {
  testForward.both(
    "shows stored, acknowledged and refused events, and is narrowed by arrival, zone and time",
    async (given) => {
      way = given;
      await forwardThree();
      const from = new Date(DAY_START).toISOString();
      const { items } = await json<{ items: object[] }>("hours", "siem", "--from", from);
      expect(items).toHaveLength(24);
      expect(items.slice(0, 3)).toMatchObject([
        {
          zoneId: ZONE,
          startsAt: from,
          state: "sealed",
          stored: 2,
          acknowledged: 1,
          refused: 1,
          arrival: "arrived",
        },
        { stored: 1, acknowledged: 1, refused: 0, counted: null, arrival: "arrived", sentAgainAt: null },
        { stored: 0, acknowledged: 0, arrival: "arrived", provenAt: null },
      ]);
      await pool.query(
        "update forward_hours set arrival = 'differs', counted = 0 where acknowledged = 1 and stored = 1",
      );
      const { out } = await run("hours", "siem", "--from", from, "--arrival", "differs");
      expect(out.split("\n").slice(1)).toEqual([
        expect.stringMatching(/^101 +2026-11-18 01:00 +sealed +1 +1 +0 +0 +differs *$/),
        "",
      ]);
      expect((await run("hours", "siem", "--from", from, "--arrival", "open")).out).toBe(
        "No hour matches.\n",
      );
      const paged = await json<{ items: object[] }>("hours", "siem", "--from", from, "--limit", "5");
      expect(paged.items).toEqual(
        (await json<{ items: object[] }>("hours", "siem", "--from", from)).items.slice(0, 5),
      );
    },
  );

  testForward.both("names every mistake", async (given) => {
    way = given;
    const mistakes = async (...args: string[]) => {
      const { code, err } = await run(...args);
      expect(code).toBe(2);
      return err.trim().split("\n  - ").slice(1);
    };
    expect(await mistakes("hours", "--arrival", "lost", "--zone", "x")).toEqual([
      "<destination> is missing",
      '--zone "x" must be a whole number',
      '--arrival "lost" must be one of open, arrived, differs',
    ]);
    const known =
      "must be a destination that is configured or was used before (files, siem): did you mean siem?";
    expect(await mistakes("hours", "siemm")).toEqual([`<destination> "siemm" ${known}`]);
    expect(await mistakes("refused", "siemm")).toEqual([`<destination> "siemm" ${known}`]);
    expect(await mistakes("retry", "siemm")).toEqual([`<destination> "siemm" ${known}`]);
    expect(await mistakes("verify", "siemm")).toEqual([`<destination> "siemm" ${known}`]);
    expect(await mistakes("hours", "siem", "--from", "2026-11-18", "--to", "2026-11-17")).toEqual([
      '--to "2026-11-17" must be after from, 2026-11-18T00:00:00.000Z',
    ]);
    const span = ["--from", "2026-11-18", "--to", "2026-11-19"];
    expect(await mistakes("send-again", "siem", "--zone", "101", ...span)).toEqual([
      '--zone "101" must be a zone that is forwarded to siem',
    ]);
    await forwardThree();
    await pool.query("update forward_cursors set since = $1", [new Date(DAY_START)]);
    expect(
      await mistakes("send-again", "siem", "--zone", "101", "--from", "2026-11-17", "--to", "2026-11-19"),
    ).toEqual([
      '--from "2026-11-17" must be at or after 2026-11-18T00:00:00.000Z, where the destination begins',
    ]);
    expect(
      await mistakes("send-again", "siem", "--zone", "101", "--from", "2026-01-01", "--to", "2026-11-19"),
    ).toEqual([expect.stringContaining("must be at most 100 days before to")]);
  });
});

testForward(
  "forward refused lists refused events with the receiver's reason, newest first",
  async (given) => {
    way = given;
    await forwardThree();
    await pool.query(`insert into forward_refusals select occurred_at + interval '1 minute', refused_at, zone_id, destination,
    E'\\x1b[2Jnewer', receipt, reason from forward_refusals`);
    const { out } = await run("refused", "siem");
    expect(out.split("\n").slice(1, 3)).toEqual([
      expect.stringMatching(/^101 +2026-11-18 00:07 +\\u\{1b\}\[2Jnewer +\S+ \S+ +.*203\.0\.113\.\*/),
      expect.stringMatching(/^101 +2026-11-18 00:06 +bad /),
    ]);
    expect(out).not.toContain("\u001b");
    expect((await json<{ items: object[] }>("refused", "siem", "--limit", "1")).items).toMatchObject([
      { logId: "\u001b[2Jnewer" },
    ]);
    expect((await run("refused", "files")).out).toBe("No event was refused.\n");
  },
);

describe("changes", () => {
  testForward("forward retry sends the refused events again, and nothing else", async (given) => {
    way = given;
    await forwardThree();
    const repeated = receiver.repeated();
    expect(await run("retry", "siem", ...way.by("alice"))).toMatchObject({
      code: 0,
      out: "The destination will be tried now. 1 refused event of 1 hour will be sent again.\n",
    });
    await world.run();
    expect([...receiver.stored.keys()].sort()).toEqual(["101 a", "101 bad", "101 c"]);
    expect(receiver.repeated()).toBe(repeated);
    expect((await run("refused", "siem")).out).toBe("No event was refused.\n");
    expect((await run("status")).out).toContain("every sealed hour has arrived: 24 of 24");
    expect(await audited()).toEqual([
      { action: "forward.retried", subject: "destination siem", details: { events: 1, hours: 1 } },
    ]);
  });

  testForward("forward retry of a refused event whose hour is closed sends the hour again", async (given) => {
    way = given;
    await forwardThree();
    await pool.query("update forward_hours set is_closed = true");
    await pool.query("delete from forward_receipts");
    const repeated = receiver.repeated();
    await run("retry", "siem");
    await world.run();
    expect(receiver.stored.size).toBe(3);
    expect(receiver.repeated() - repeated).toBe(1);
    expect((await json<{ items: object[] }>("hours", "siem", "--from", "2026-11-18")).items[0]).toMatchObject(
      {
        stored: 2,
        acknowledged: 2,
        refused: 0,
        arrival: "arrived",
      },
    );
  });

  testForward.both(
    "forward send-again says first how much it would send, and then sends whole hours",
    async (given) => {
      way = given;
      await world.store([event(5, "a"), event(6, "b"), event(65, "c")]);
      await world.run();
      receiver.stored.clear();
      const wanted = [
        "send-again",
        "siem",
        "--zone",
        "101",
        "--from",
        "2026-11-18T00:00",
        "--to",
        "2026-11-18T01:00",
      ];
      expect((await run(...wanted)).out).toBe(
        "2 events of 1 hour would be sent again. Nothing was sent. Add --yes to send these events.\n",
      );
      await world.run();
      expect(receiver.stored.size).toBe(0);
      expect(await audited()).toEqual([]);
      expect((await run(...wanted, "--yes")).out).toContain("2 events of 1 hour will be sent again.");
      expect((await run("status")).out).toMatch(/\nzone 101 +2025-10-15 00:00 +24 +23 +1 +0 +0 +2 /);
      await world.run();
      expect([...receiver.stored.keys()].sort()).toEqual(["101 a", "101 b"]);
      expect((await run("status")).out).toContain("every sealed hour has arrived: 24 of 24");
      expect(await audited()).toMatchObject([
        {
          action: "forward.sent-again",
          subject: "destination siem",
          details: { zoneId: 101, hours: 1, events: 2 },
        },
      ]);
    },
  );

  testForward("forward verify has the hours proven again", async (given) => {
    way = given;
    await forwardThree();
    await pool.query("update forward_hours set proven_at = '2026-01-01'");
    expect((await run("verify", "siem", "--from", "2026-11-18T01:00")).out).toMatch(
      /^1 hour will be proven again\. /,
    );
    expect((await run("status")).out).toContain("23 of 24 sealed hours have arrived");
    await world.run();
    const { items } = await json<{ items: { provenAt: string | null }[] }>(
      "hours",
      "siem",
      "--from",
      "2026-11-18",
    );
    expect(items.slice(0, 2).map(({ provenAt }) => provenAt?.startsWith("2026-01-01"))).toEqual([
      true,
      false,
    ]);
    expect((await run("verify", "siem", "--to", "2026-11-18T00:00")).out).toMatch(/^0 hours /);
    expect(await audited()).toMatchObject([
      { action: "forward.verified", details: { zoneIds: null, from: "2026-11-18T01:00:00.000Z", hours: 1 } },
    ]);
  });
});

describe("keys", () => {
  async function start() {
    const service = { ...SERVICE, alerting: () => parseConfig(SETTINGS).alerting };
    const { url } = await startArchive(database.url, {}, { clock: () => NOW, service });
    const key = async (role: "reader" | "operator", more = {}) => (await makeKey(database, role, more)).key;
    return { url, key };
  }

  test("a key for one zone sees its zones only, and not why a destination fails", async () => {
    await world.store([event(5, "own")]);
    await world.store([{ ...event(5, "foreign") }], { zoneId: OTHER });
    await world.run({}, [ZONE, OTHER]);
    await pool.query("update forward_destinations set failing_since = now(), last_error = 'canary'");
    await pool.query(
      "insert into forward_refusals values ($1, now(), $2, 'siem', 'canary', decode(repeat('00', 12), 'hex'), 'canary')",
      [new Date(DAY_START), OTHER],
    );
    const { url, key } = await start();
    const own = await key("operator", { zoneIds: [ZONE] });
    const { items } = await ask<{ items: { zones: object[] }[] }>(url, "/api/v1/destinations", own);
    expect(items).toMatchObject([
      { name: "siem", lastError: null, zones: [{ zoneId: ZONE, arrived: 24, refused: 0 }] },
    ]);
    expect(items[0]?.zones).toHaveLength(1);
    const path = `/api/v1/destinations/siem/hours?from=${DAY_START}`;
    const hours = await ask<{ items: { zoneId: number; refused: number }[] }>(url, path, own);
    expect(hours.items).toHaveLength(24);
    expect(hours.items.filter(({ zoneId, refused }) => zoneId !== ZONE || refused > 0)).toEqual([]);
    expect(await ask(url, "/api/v1/destinations/siem/refused", own)).toMatchObject({ items: [] });
    await ask(url, `/api/v1/destinations/siem/hours?zone=${OTHER}`, own, { status: 403 });
    await ask(url, "/api/v1/destinations/files/hours", own, { status: 422 });
    const body = JSON.stringify({ zone: OTHER, from: "2026-11-18T00:00:00Z", to: "2026-11-19T00:00:00Z" });
    await ask(url, "/api/v1/destinations/siem/send-again", own, { method: "POST", body, status: 403 });
    const verified = await ask(url, "/api/v1/destinations/siem/verify", own, {
      method: "POST",
      body: "{}",
      status: 202,
    });
    expect(verified).toEqual({ hours: 1 });
    const { rows } = await pool.query("select zone_id from forward_hours where arrival = 'open'");
    expect(rows).toEqual([{ zone_id: ZONE }]);
    // The pause is that of the other zone, too.
    await pool.query("update forward_destinations set retry_at = now() + interval '1 h'");
    const retry = async (who: string) =>
      ask(url, "/api/v1/destinations/siem/retry", who, { method: "POST", body: "{}" });
    const isPaused = async () =>
      (await pool.query("select from forward_destinations where retry_at > now()")).rowCount === 1;
    expect(await retry(own)).toEqual({ isTried: false, events: 0, hours: 0 });
    expect(await isPaused()).toBe(true);
    expect((await pool.query("select from forward_refusals")).rowCount).toBe(1);
    expect(await retry(await key("operator"))).toMatchObject({ isTried: true, events: 1 });
    expect(await isPaused()).toBe(false);
  });

  test("a masked key sees addresses of reasons and filters shortened, and a reader changes nothing", async () => {
    await forwardThree();
    await pool.query("update forward_refusals set reason = 'from 203.0.113.7'");
    const { url, key } = await start();
    const masked = await key("reader", { isMasked: true });
    const refused = await ask<{ items: object[] }>(url, "/api/v1/destinations/siem/refused", masked);
    expect(refused.items).toMatchObject([
      { logId: "bad", reason: expect.stringMatching(/^from 203\.0\.113\.\D/) },
    ]);
    expect(JSON.stringify(await ask(url, "/api/v1/destinations", masked))).not.toContain("203.0.113.7");
    for (const act of ["retry", "verify"])
      await ask(url, `/api/v1/destinations/siem/${act}`, masked, { method: "POST", body: "{}", status: 403 });
  });
});
