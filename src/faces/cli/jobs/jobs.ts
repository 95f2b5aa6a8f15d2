import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readReplicas } from "#db/service/replicas.ts";
import { toLine } from "#lib/plain-text.ts";
import { showTime } from "#lib/show-time.ts";
import { type ListedTick, listTicks } from "#operations/list-ticks.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { commandGroup, type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";

const HELP = `
Shows the cron expression of each tick (second, minute, hour, day of month, month, day of week; UTC), the last run of its job in
any process, with the reason if it did nothing, and the next run. Processes report this every 15 seconds. The configuration
file changes expressions under schedule (docs/configuration.md).

Examples:
  npm run -s longwatch -- jobs list
  npm run -s longwatch -- jobs list --json`;

/** `longwatch jobs`. */
export function jobsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("jobs", "Show when the background jobs run.", io, [listCommand(readConfig, io)]);
}

function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List each job's schedule, last run and next run.", HELP, io)
    .option("--json", "print JSON")
    .action(
      storeAction<{ readonly json?: true }>(io, async (flags, read) => {
        read.finish();
        const ticks = listTicks(await withStore(readConfig(), ({ db }) => readReplicas(db)));
        if (flags.json === true) await writeJson(io.stdout, { items: ticks });
        else await writeOut(io.stdout, drawTable(HEAD, ticks.map(toRow), pickPaint(io)));
      }),
    );
}

const HEAD = ["JOB", "EXPRESSION", "LAST RUN (UTC)", "NEXT RUN (UTC)", "RESULT"];

function toRow({ job, expression, lastRun, nextAt, off }: ListedTick): string[] {
  const result = lastRun === null ? [] : [lastRun.result, lastRun.why].filter((part) => part !== null);
  return [
    job,
    expression ?? "-",
    lastRun === null ? "-" : showTime(Date.parse(lastRun.at)),
    nextAt === null ? "-" : showTime(Date.parse(nextAt)),
    toLine([...(off === null ? [] : [off]), result.join(": ")].filter((part) => part !== "").join("; "), 200),
  ];
}
