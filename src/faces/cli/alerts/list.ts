import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { ALERT_SORTS, type AlertPosition, listAlerts } from "#db/alerting/alert-reports.ts";
import { ALERT_STATES } from "#faces/http/routes/v1/alert-schemas.ts";
import { readAlertView, toAlertItem } from "#faces/http/routes/v1/to-alert-item.ts";
import { showAge } from "#lib/ago.ts";
import { toLine } from "#lib/plain-text.ts";
import { showTime } from "#lib/show-time.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { gather, readWords } from "../options/read-list.ts";
import { AFTER_OPTION, describeNext, type PageFlags, readPage, toListPage } from "../options/read-page.ts";
import { requireAlert, requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type Cell, drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";
import { addFilterOptions, type FilterFlags, readFilter } from "./read-filter.ts";

const DEFAULT_LIMIT = 100;

const HELP = `
Firing alerts come first, then acknowledged ones, each by severity, and the newest of one severity first. --sort newest
sorts by time alone. Without --state, resolved alerts are left out. --rule may end in * for a family of rules.
--json prints the answer of GET /api/v1/alerts.

Examples:
  npm run -s longwatch -- alerts list
  npm run -s longwatch -- alerts list --state all --since -24h
  npm run -s longwatch -- alerts list --zone 101 --rule '942*' --json`;

interface Flags extends PageFlags, FilterFlags {
  readonly sort?: string;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("list", "List alerts.", HELP, io).option(
    "--state <states>",
    `${ALERT_STATES.join(", ")} or all (default: firing,acknowledged)`,
    gather,
  );
  return addFilterOptions(command)
    .option("--sort <order>", `${ALERT_SORTS.join(" or ")} (default: worst)`)
    .option("--limit <n>", `show at most this many (default: ${DEFAULT_LIMIT})`)
    .option(...AFTER_OPTION)
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const filter = readFilter(read, flags);
        const { sort: order, limit: most, after } = flags;
        const [sort = "worst"] =
          readWords(read, "sort", order === undefined ? undefined : [order], ALERT_SORTS) ?? [];
        const { limit } = readPage(read, most === undefined ? {} : { limit: most }, DEFAULT_LIMIT);
        const position = readPosition(read, after);
        read.finish();
        const config = readConfig();
        const { rows, view } = await withStore(config, async ({ db }) => {
          await requireZones(db, config, filter.zoneId === undefined ? [] : [filter.zoneId]);
          if (filter.groupId !== undefined) await requireAlert(db, "group", filter.groupId);
          const rows = await listAlerts(db, { ...filter, sort, after: position, limit: limit + 1 });
          return { rows, view: await readAlertView(db, false, io.clock()) };
        });
        const toNext = ({ urgency, id }: AlertPosition) => `${urgency}.${id}`;
        const page = toListPage(rows, { limit }, (row) => toAlertItem(row, view), toNext);
        if (flags.json === true) await writeJson(io.stdout, page);
        else await writeOut(io.stdout, describe(page, io.clock(), pickPaint(io)));
      }),
    );
}

/** Reads `--after`: the urgency and the number of the last alert of the page before. */
function readPosition(read: FlagReader, text: string | undefined): AlertPosition | undefined {
  if (text === undefined) return undefined;
  const [, urgency, id] = /^(\d{1,2})\.([1-9]\d{0,14})$/.exec(text) ?? [];
  if (id === undefined) return read.wrong("after", text, "the `next` of the previous page");
  return { urgency: Number(urgency), id: Number(id) };
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
function toRow(
  { id, state, severity, firedAt, headline, acknowledgedBy, quietSince, silence }: Item,
  nowMs: number,
): Cell[] {
  const by = state === "acknowledged" && acknowledgedBy !== null ? ` by ${toLine(acknowledgedBy, 40)}` : "";
  const quiet = quietSince === null ? "" : `, quiet ${showAge(nowMs - Date.parse(quietSince))}`;
  const at = Date.parse(firedAt);
  const muted = silence === null ? "" : `, silenced until ${showTime(Date.parse(silence.expiresAt))}`;
  return [
    `#${id}`,
    { text: severity, style: SEVERITY_STYLES[severity] },
    { text: `${state}${by}${quiet}${muted}`, style: state === "firing" && silence === null ? "bold" : "dim" },
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
