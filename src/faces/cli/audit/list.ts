import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { type AuditedAct, listAudit } from "#db/keys/audit-trail.ts";
import { shortenText } from "#lib/escape-text.ts";
import { showAge } from "#lib/show-age.ts";
import { showTime } from "#lib/show-time.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import {
  AFTER_OPTION,
  describeNext,
  oneMore,
  type PageFlags,
  readPage,
  toListPage,
} from "../options/read-page.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type Cell, drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";

const DEFAULT_LIMIT = 50;
const MAX_NAME_CHARS = 64;
const MAX_DETAIL_CHARS = 300;

const HELP = `
The newest entry comes first. Postgres refuses to change or delete an entry. Exit code 0.

Examples:
  npm run -s longwatch -- audit list
  npm run -s longwatch -- audit list --since -30d --action erasure.
  npm run -s longwatch -- audit list --action erasure.completed --json`;

interface Flags extends PageFlags {
  readonly since?: string;
  readonly until?: string;
  readonly action?: string;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List the entries of the audit trail.", HELP, io)
    .option("--since <time>", "start: ISO-8601, epoch ms or relative such as -30d (default: all)")
    .option("--until <time>", "end (same formats; default: all)")
    .option(
      "--action <name>",
      "one action such as erasure.completed, or a prefix such as erasure. (default: all)",
    )
    .option("--limit <n>", `show at most this many (default: ${DEFAULT_LIMIT})`)
    .option(...AFTER_OPTION)
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const asked = readPage(read, flags, DEFAULT_LIMIT);
        const since = flags.since === undefined ? undefined : read.time("since", flags.since);
        const until = flags.until === undefined ? undefined : read.time("until", flags.until);
        read.finish();
        const search = { since, until, action: flags.action, ...oneMore(asked) };
        const rows = await withStore(readConfig(), ({ db }) => listAudit(db, search));
        if (flags.json === true) return writeJson(io.stdout, toListPage(rows, asked, toItem));
        const { items, next } = toListPage(rows, asked, (row) => row);
        const table = drawTable(HEAD, items.map(toRow(io.clock())), pickPaint(io));
        await writeOut(
          io.stdout,
          items.length === 0 ? "No entry matches.\n" : `${table}${describeNext(next)}`,
        );
      }),
    );
}

const HEAD = ["ENTRY", "AGE", "AT (UTC)", "BY", "ACTION", "SUBJECT", "DETAILS"];

function toItem({ at, ...act }: AuditedAct) {
  return { ...act, at: new Date(at).toISOString() };
}

function toRow(nowMs: number) {
  const name = (text: string) => shortenText(text, MAX_NAME_CHARS);
  return ({ id, at, actor, action, subject, details }: AuditedAct): Cell[] => {
    const what = shortenText(JSON.stringify(details), MAX_DETAIL_CHARS);
    const columns = [name(actor), { text: name(action), style: "bold" } as const, name(subject)];
    return [
      `#${id}`,
      showAge(nowMs - at),
      showTime(at - (at % 1_000)),
      ...columns,
      what === "{}" ? "" : what,
    ];
  };
}
