import type { Command } from "commander";
import { listSilences } from "../../../db/queries/silences.ts";
import type { Config } from "../../config.ts";
import { standingOf } from "../../report/silence-standing.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../open-store.ts";
import { readServiceClock } from "../service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";
import { describeSilence } from "./describe-silence.ts";

const MAX_SHOWN = 1_000;

const HELP = `
Those that are not over, the first to end in front; with --all the newest ${MAX_SHOWN}, ended or not.

Examples:
  npm run -s longwatch -- silences list
  npm run -s longwatch -- silences list --all --json`;

interface Flags {
  readonly all?: true;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List silences.", HELP, io)
    .option("--all", "also those that are over")
    .option("--json", "as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        read.finish();
        const { rows, nowMs } = await withStore(readConfig(), async (database) => {
          const now = (await readServiceClock(database, io.clock))();
          const query = { nowMs: now, withExpired: flags.all === true, limit: MAX_SHOWN };
          return { rows: await listSilences(database.db, query), nowMs: now };
        });
        if (flags.json === true) {
          const silences = rows.map((row) => ({
            ...row,
            createdAt: row.createdAt.getTime(),
            startsAt: row.startsAt.getTime(),
            expiresAt: row.expiresAt.getTime(),
            standing: standingOf(row, nowMs),
          }));
          await writeJson(io.stdout, { silences });
        } else {
          const lines = rows.map((row) => describeSilence(row, nowMs)).join("");
          await writeOut(io.stdout, lines === "" ? "No silences.\n" : lines);
        }
      }),
    );
}
