import type { Command } from "commander";
import type { Config } from "../../config/config.ts";
import type { BacktestReport } from "../../detection/backtest/backtest.ts";
import { DEFAULT_Z, FLOOR } from "../../detection/policy.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { requireRule, requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { describeReport, toReportJson } from "./describe-report.ts";
import { type BacktestFlags, readBacktestFlags } from "./read-backtest-flags.ts";
import { replayFile } from "./replay-file.ts";
import { replayStore, type StoredReplay } from "./replay-store.ts";
import { writeAlertMinutes } from "./write-alert-minutes.ts";

const HELP = `
The file has the header series,timestamp,count and a row per series and minute with events: the timestamp is the epoch
second at which the minute starts; minutes without events are left out. Rows of a series are in ascending order, or are
sorted in memory. What lies before --start is history. A minute is in alert from the one that reached its threshold to
the last that was not quiet; the quarter of an hour of quiet that closes an alert is not counted.

Examples:
  npm run -s longwatch -- backtest --counts counts.csv --alerts alerts.csv
  npm run -s longwatch -- backtest --counts counts.csv --z 4.5 --start 2026-11-08 --json
  npm run -s longwatch -- backtest --zone 101 --rule 942100 --days 14 --z 3`;

/** `longwatch backtest`: what the detector would have paged, at any z, over a file of counts or the stored history. */
export function backtestCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("backtest", "Show what the spike detector would have paged.", HELP, io)
    .option("--counts <file>", "CSV file of counts per series and minute")
    .option("--start <time>", "judge from here: epoch seconds, ISO-8601 (default: where the counts begin)")
    .option("--end <time>", "up to here, left out (default: where the counts end)")
    .option("--zone <id>", "replay what is stored of a shield zone")
    .option("--rule <id>", "only this rule of the zone (default: all)")
    .option("--days <count>", "that many days up to now (default: 7)")
    .option("--z <number>", `deviations above a rule's usual peaks (default: ${DEFAULT_Z})`)
    .option("--floor <count>", `events that a window must have at least (default: ${FLOOR})`)
    .option("--alerts <file>", "write series,timestamp for every minute in alert")
    .option("--json", "summary and alerts as JSON")
    .action(
      storeAction<BacktestFlags>(io, async (flags, read) => {
        const now = io.clock();
        const asked = readBacktestFlags(read, flags, now);
        if (asked === undefined) return;
        const { source, ...policy } = asked;
        const report =
          source.kind === "file"
            ? await replayFile(source.path, { ...policy, ...source }, io.stderr)
            : await replay(readConfig(), { ...source, ...policy, nowMs: now });
        if (flags.alerts !== undefined) await writeAlertMinutes(flags.alerts, report.alerts);
        if (flags.json === true) await writeJson(io.stdout, toReportJson(report, policy));
        else await writeOut(io.stdout, describeReport(report, policy));
      }),
    );
}

function replay(config: Config, asked: StoredReplay): Promise<BacktestReport> {
  return withStore(config, async ({ db }) => {
    await requireZones(db, config, [asked.zoneId]);
    if (asked.ruleId !== undefined) await requireRule(db, asked.zoneId, asked.ruleId);
    return replayStore(db, asked);
  });
}
