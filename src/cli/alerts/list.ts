import type { Command } from "commander";
import { type AlertFilter, listAlerts } from "../../../db/alerting/alert-reports.ts";
import type { Config } from "../../config/config.ts";
import type { Paint, Style } from "../../delivery/channels/terminal/terminal-style.ts";
import { toAlertItem } from "../../http/routes/v1/to-alert-item.ts";
import { toLine } from "../../lib/plain-text.ts";
import { showTime } from "../../lib/show-time.ts";
import { severities } from "../../model/alert-message.ts";
import { ALERT_KINDS } from "../../model/kinds.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { gather, readRulePattern, readWords } from "../options/read-list.ts";
import {
  AFTER_OPTION,
  type AskedPage,
  describeNext,
  oneMore,
  type PageFlags,
  readPage,
  toListPage,
} from "../options/read-page.ts";
import { readRowId } from "../options/read-row-id.ts";
import { readZone } from "../options/read-span.ts";
import { requireAlert, requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { showAge } from "../terminal/ago.ts";
import { type Cell, drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";

const STATES = ["firing", "acknowledged", "resolved"] as const;
const DEFAULT_LIMIT = 100;

const HELP = `
The newest alert comes first. Without --state, resolved alerts are left out. --rule may end in * for a family of rules.
--json prints the answer of GET /api/v1/alerts.

Examples:
  npm run -s longwatch -- alerts list
  npm run -s longwatch -- alerts list --state all --since -24h
  npm run -s longwatch -- alerts list --zone 101 --rule '942*' --json`;

interface Flags extends PageFlags {
  readonly state?: readonly string[];
  readonly zone?: string;
  readonly rule?: string;
  readonly severity?: readonly string[];
  readonly kind?: readonly string[];
  readonly group?: string;
  readonly since?: string;
  readonly until?: string;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List alerts.", HELP, io)
    .option("--state <states>", `${STATES.join(", ")} or all (default: firing,acknowledged)`, gather)
    .option("--zone <id>", "only alerts of this shield zone")
    .option("--rule <id>", "only alerts of this rule, or of a family such as 942*")
    .option("--severity <names>", severities.join(", "), gather)
    .option("--kind <names>", `${ALERT_KINDS.join(", ")}; self: alerts of Longwatch about itself`, gather)
    .option("--group <id>", "only the member alerts of this group alert")
    .option("--since <time>", "fired at this time or later: ISO-8601, epoch ms, or relative such as -24h")
    .option("--until <time>", "fired before this time (same formats)")
    .option("--limit <n>", `show at most this many (default: ${DEFAULT_LIMIT})`)
    .option(...AFTER_OPTION)
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const filter = readFilter(read, flags);
        read.finish();
        const config = readConfig();
        const rows = await withStore(config, async ({ db }) => {
          await requireZones(db, config, filter.zoneId === undefined ? [] : [filter.zoneId]);
          if (filter.groupId !== undefined) await requireAlert(db, "group", filter.groupId);
          return listAlerts(db, { ...filter, ...oneMore(filter) });
        });
        const page = toListPage(rows, filter, (row) => toAlertItem(row, false));
        if (flags.json === true) await writeJson(io.stdout, page);
        else await writeOut(io.stdout, describe(page, io.clock(), pickPaint(io)));
      }),
    );
}

function readFilter(read: FlagReader, flags: Flags): AlertFilter & AskedPage {
  const states = readWords(read, "state", flags.state, [...STATES, "all"]) ?? ["firing", "acknowledged"];
  return {
    states: states.includes("all") ? STATES : STATES.filter((state) => states.includes(state)),
    zoneId: readZone(read, flags, false),
    rule: flags.rule === undefined ? undefined : readRulePattern(read, flags.rule),
    severities: readWords(read, "severity", flags.severity, severities),
    kinds: readWords(read, "kind", flags.kind, ALERT_KINDS),
    groupId: flags.group === undefined ? undefined : readRowId(read, flags.group, "alert"),
    sinceMs: flags.since === undefined ? undefined : read.time("since", flags.since),
    untilMs: flags.until === undefined ? undefined : read.time("until", flags.until),
    ...readPage(read, flags, DEFAULT_LIMIT),
  };
}

type Item = ReturnType<typeof toAlertItem>;

const HEAD = ["ALERT", "SEVERITY", "STATE", "AGE", "SINCE (UTC)", "HEADLINE"];

function describe(
  { items, next }: { readonly items: readonly Item[]; readonly next: string | null },
  nowMs: number,
  paint: Paint,
): string {
  if (items.length === 0) return "No alert matches. Without --state, resolved alerts are left out.\n";
  const rows = items.map((item) => toRow(item, nowMs));
  return `${drawTable(HEAD, rows, paint)}${describeNext(next)}`;
}

/** The headline and the name are untrusted text. */
function toRow({ id, state, severity, firedAt, headline, acknowledgedBy }: Item, nowMs: number): Cell[] {
  const by = state === "acknowledged" && acknowledgedBy !== null ? ` by ${toLine(acknowledgedBy, 40)}` : "";
  const at = Date.parse(firedAt);
  return [
    `#${id}`,
    { text: severity, style: SEVERITY_STYLES[severity] },
    { text: `${state}${by}`, style: state === "firing" ? "bold" : "dim" },
    showAge(nowMs - at),
    showTime(at - (at % 1_000)),
    headline === null ? "(the stored message cannot be read)" : toLine(headline, 200),
  ];
}

const SEVERITY_STYLES: Readonly<Record<Item["severity"], Style>> = {
  critical: "red",
  error: "red",
  warning: "yellow",
  info: "cyan",
};
