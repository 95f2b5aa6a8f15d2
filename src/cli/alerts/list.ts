import type { Command } from "commander";
import { type AlertFilter, listAlerts } from "../../../db/queries/alert-reports.ts";
import { toLine } from "../../channel/plain-text.ts";
import type { Config } from "../../config.ts";
import { type AlertSummary, summariseAlert } from "../../report/summarise-alert.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../open-store.ts";
import { many } from "../progress-bar.ts";
import { gather, readRulePattern, readWords } from "../read-list.ts";
import { readRowId } from "../read-row-id.ts";
import { readZone, showTime } from "../read-span.ts";
import { requireAlert, requireZones } from "../require-known.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";

const STATES = ["firing", "acknowledged", "resolved"] as const;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

const HELP = `
The newest first. Without --state those that are not resolved; --rule may end in * for a family.

Examples:
  npm run -s longwatch -- alerts list
  npm run -s longwatch -- alerts list --state all --since -24h
  npm run -s longwatch -- alerts list --zone 101 --rule '942*' --json`;

interface Flags {
  readonly state?: readonly string[];
  readonly zone?: string;
  readonly rule?: string;
  readonly group?: string;
  readonly since?: string;
  readonly limit?: string;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List alerts.", HELP, io)
    .option("--state <states>", `${STATES.join(", ")} or all (default: firing,acknowledged)`, gather)
    .option("--zone <id>", "of one shield zone")
    .option("--rule <id>", "of one rule, or of a family such as 942*")
    .option("--group <id>", "of the rules that alert speaks for, a flood's")
    .option("--since <time>", "fired then or later: ISO-8601, epoch ms, relative such as -24h")
    .option("--limit <n>", `at most so many (default: ${DEFAULT_LIMIT})`)
    .option("--json", "as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const filter = readFilter(read, flags);
        read.finish();
        // One more than is shown tells whether there are more.
        const asked = { ...filter, limit: filter.limit + 1 };
        const config = readConfig();
        const rows = await withStore(config, async ({ db }) => {
          await requireZones(db, config, filter.zoneId === undefined ? [] : [filter.zoneId]);
          if (filter.groupId !== undefined) await requireAlert(db, "group", filter.groupId);
          return listAlerts(db, asked);
        });
        const alerts = rows.slice(0, filter.limit).map(summariseAlert);
        const hasMore = rows.length > filter.limit;
        if (flags.json === true) await writeJson(io.stdout, { alerts, hasMore });
        else await writeOut(io.stdout, describe(alerts, hasMore));
      }),
    );
}

function readFilter(read: FlagReader, flags: Flags): AlertFilter {
  const states = readWords(read, "state", flags.state, [...STATES, "all"]) ?? ["firing", "acknowledged"];
  const limit = read.integer("limit", flags.limit, `a number from 1 to ${MAX_LIMIT}`) ?? DEFAULT_LIMIT;
  if (limit < 1 || limit > MAX_LIMIT) read.wrong("limit", flags.limit, `a number from 1 to ${MAX_LIMIT}`);
  return {
    states: states.includes("all") ? STATES : STATES.filter((state) => states.includes(state)),
    zoneId: readZone(read, flags, false),
    rule: flags.rule === undefined ? undefined : readRulePattern(read, flags.rule),
    groupId: flags.group === undefined ? undefined : readRowId(read, flags.group, "alert"),
    sinceMs: flags.since === undefined ? undefined : read.time("since", flags.since),
    limit,
  };
}

function describe(alerts: readonly AlertSummary[], hasMore: boolean): string {
  if (alerts.length === 0) return "No such alerts; without --state those that are resolved are left out.\n";
  const more = hasMore
    ? `There are more than ${many(alerts.length, "alert")}: --limit says how many are shown.\n`
    : "";
  return `${alerts.map(describeAlert).join("")}${more}`;
}

/** One line; the headline is the log's text, the name somebody's. */
function describeAlert({ id, state, severity, firedAt, headline, acknowledgedBy }: AlertSummary): string {
  const by = state === "acknowledged" && acknowledgedBy !== null ? ` by ${toLine(acknowledgedBy, 40)}` : "";
  const said = headline === null ? "(its message cannot be read)" : toLine(headline, 200);
  return `#${id}  ${severity.padEnd(8)}  ${state}${by}  since ${showTime(firedAt)} UTC  ${said}\n`;
}
