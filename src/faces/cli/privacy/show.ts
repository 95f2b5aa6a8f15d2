import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readKeyId } from "#db/privacy/pseudonym-keys.ts";
import { type OldestRows, readOldestRows } from "#db/privacy/retention.ts";
import { showAge } from "#lib/ago.ts";
import { many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import type { Paint } from "#stages/delivery/channels/terminal/terminal-style.ts";
import type { Retention } from "#stages/privacy/retention.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";

const HELP = `
Once an hour the service deletes every UTC day of a class that is completely past the retention of the class. The command
reads only the database. Exit code 0.

Examples:
  npm run -s longwatch -- privacy show
  npm run -s longwatch -- privacy show --json`;

interface Flags {
  readonly json?: true;
}

interface DataClass {
  readonly name: string;
  readonly days: number;
  readonly variable: string;
  readonly oldest: number | null;
}

export function showCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("show", "Show the retention and the oldest row of each data class.", HELP, io)
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        read.finish();
        const config = readConfig();
        const { oldest, keyId } = await withStore(config, async ({ db }) => ({
          oldest: await readOldestRows(db),
          keyId: await readKeyId(db),
        }));
        const classes = listClasses(config.retention, oldest);
        if (flags.json === true)
          await writeJson(io.stdout, {
            items: classes.map((one) => ({
              ...one,
              oldest: one.oldest === null ? null : new Date(one.oldest).toISOString(),
            })),
            next: null,
            keyId,
          });
        else await writeOut(io.stdout, describe(classes, keyId, io.clock(), pickPaint(io)));
      }),
    );
}

function listClasses({ rawDays, ipDays, eventDays, rollUpDays }: Retention, oldest: OldestRows): DataClass[] {
  return [
    { name: "records as received", days: rawDays, variable: "LONGWATCH_RAW_DAYS", oldest: oldest.raw },
    { name: "unreadable entries", days: rawDays, variable: "LONGWATCH_RAW_DAYS", oldest: oldest.quarantined },
    { name: "full addresses", days: ipDays, variable: "LONGWATCH_IP_DAYS", oldest: oldest.fullAddress },
    { name: "events", days: eventDays, variable: "LONGWATCH_RETENTION_DAYS", oldest: oldest.event },
    {
      name: "counts, spikes, alerts",
      days: rollUpDays,
      variable: "LONGWATCH_ROLL_UP_DAYS",
      oldest: oldest.rollUp,
    },
  ];
}

function describe(classes: readonly DataClass[], keyId: string | null, nowMs: number, paint: Paint): string {
  const rows = classes.map(({ name, days, variable, oldest }) => [
    name,
    many(days, "day"),
    oldest === null ? "none stored" : `${showTime(oldest)} UTC`,
    oldest === null ? "" : showAge(nowMs - oldest),
    variable,
  ]);
  const key =
    keyId === null ? "no pseudonym or tombstone was made yet" : `pseudonyms are made with key ${keyId}`;
  return `${drawTable(["CLASS", "KEPT FOR", "OLDEST", "AGE", "SETTING"], rows, paint)}${key}\n`;
}
