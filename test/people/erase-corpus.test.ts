import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { markAlert } from "#alerts/operations/act-on-alerts.ts";
import { addSilence } from "#alerts/silences/add-silence.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { HOUR_MS } from "#lib/units.ts";
import { readAddress } from "#model/ip-address.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { EVIDENCE } from "../alerts/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { NOW } from "../emulator/support.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { acknowledgeByHand } from "../operations/act-by-hand.ts";
import { performOn } from "../operations/perform-on.ts";
import { dumpDatabase, environment } from "./erasure-world.ts";
import { isAnother, neighbour, type SpelledAddress, spelledIpv4, spelledIpv6 } from "./spelled-address.ts";

const SEED = 19;
const CORPUS = 10;

let database: MigratedDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

const FIRED = { transition: 1, at: NOW, reason: "first", state: "firing" };

interface Written extends SpelledAddress {
  readonly text: string;
}

/** Spellings that programs do not read as an address, and people do. */
const HIDDEN = [
  "103[.]100[.]202[.]86",
  "103%2E100%2e202%252E86",
  "１０３.１００.２０２．８６",
  "1734658646",
  "103-100-202-86",
  "103 . 100 . 202 . 86",
  "103 – 100 – 202 – 86",
  "0x67.0x64.0xca.0x56",
  "86.202.100.103.in-addr.arpa",
];

/** Addresses of both families in all spellings, each between two characters that Postgres takes. */
const corpus: readonly Written[] = HIDDEN.map((spelling) => ({
  address: "103.100.202.86",
  spelling,
  text: `by ${spelling}, again`,
})).concat(
  fc.sample(
    fc
      .tuple(fc.oneof(spelledIpv4, spelledIpv6), neighbour, neighbour)
      .filter(([one, before, after]) => !isAnother(before, one, after))
      .filter(([{ spelling }]) => !/^[:0.%A]*$/.test(spelling))
      .map(([one, before, after]) => {
        const text = before + one.spelling + after;
        return { ...one, text: text.replaceAll(/[\p{Cc}\p{Cs}]/gu, "~") };
      }),
    { numRuns: CORPUS, seed: SEED },
  ),
);

/** The text in every place that keeps texts of people, of the platform, of channels or of visitors. */
async function writeEverywhere(text: string, ruleId: string): Promise<void> {
  const { db, pool } = database;
  const top = { ...EVIDENCE.top, ip: [{ value: text, count: 5, share: 1 }] };
  const openedAt = new Date(NOW - HOUR_MS);
  const evidence = { ...EVIDENCE, from: openedAt.toISOString(), to: openedAt.toISOString(), top };
  const spikeId = await insertSpike(db, { openedAt, ruleId, evidence: evidence as never });
  const { rows } = await pool.query<{ id: string }>(
    `insert into alerts (fired_at, zone_id, kind, rule_id, fingerprint, spike_id, transitions)
     values (now(), 101, 'spike', $1, $1, $2, $3::jsonb) returning id`,
    [ruleId, spikeId, JSON.stringify([{ ...FIRED, note: text }])],
  );
  const alertId = Number(rows[0]?.id);
  const person = { alertId, by: text, note: text, atMs: NOW };
  const marked = { id: alertId, mark: "attack" as const, note: text };
  expect(await performOn(database, markAlert, marked, { by: text, now: NOW })).toMatchObject({
    result: "done",
  });
  expect(await acknowledgeByHand(database, person)).toMatchObject({ result: "done" });
  const silence = { matchers: { rule: [text] }, durationMinutes: 60, reason: text, dryRun: "false" as const };
  await performOn(database, addSilence, silence, { by: text, now: NOW });
  await pool.query(
    `insert into notifications (alert_id, transition, reason, channel, dedupe_key, content, last_error)
     values ($1::bigint, 1, 'first', 'terminal', $1::bigint::text, jsonb_build_object('headline', $2::text), $2::text)`,
    [alertId, text],
  );
  await pool.query(
    `insert into advice (asked_at, zone_id, rule_id, success, text) values (now(), 101, $1, true, $2)`,
    [ruleId, text],
  );
  await pool.query(`insert into channel_states (channel, last_error) values ($1, $2)`, [ruleId, text]);
  await pool.query(
    `insert into quarantined_entries (zone_id, route, reason, raw)
     values (101, 'list', 'x', convert_to($1::text, 'UTF8'))`,
    [text],
  );
}

test("an erased address leaves no byte in any table, file, output or audit entry, however it was written", async () => {
  for (const [index, { text }] of corpus.entries()) await writeEverywhere(text, String(index));
  const before = await dumpDatabase(database);
  for (const { spelling } of corpus) expect(before).toContain(spelling);
  const trail = await database.pool.query<{ row: string }>(
    "select to_jsonb(a)::text as row from audit_entries a",
  );
  for (const { spelling } of corpus)
    expect(trail.rows.map(({ row }) => row).join("\n")).not.toContain(spelling);

  const variables = environment(database);
  let printed = "";
  for (const address of new Set(corpus.map((one) => one.address))) {
    const args = ["--ip", address, "--yes", "--by", "alice"];
    const ran = await runStoreCommand(eraseCommand, variables, args, { now: NOW });
    expect({ address, code: ran.code }).toEqual({ address, code: 0 });
    expect(ran.out).toMatch(/[1-9]\d* alerts?/);
    printed += ran.out + ran.err;
  }
  const after = await dumpDatabase(database);
  const files = readFiles(variables["LONGWATCH_DATA_DIR"] ?? "");
  for (const { address, spelling } of corpus) {
    expect(readAddress(address)).not.toBeNull();
    for (const place of [after, files, printed]) expect(place).not.toContain(spelling);
  }
});

function readFiles(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}
