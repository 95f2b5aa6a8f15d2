import type { Command } from "commander";
import { type AuditedAct, listAudit } from "../../../db/queries/audit-trail.ts";
import type { Config } from "../../config.ts";
import { shortenText } from "../../edge/escape-text.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../open-store.ts";
import { showTime } from "../read-span.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";

const MOST = 10_000;
const DEFAULT_LIMIT = 50;
const MAX_NAME_CHARS = 64;
const MAX_DETAIL_CHARS = 300;

const HELP = `
Newest first. Entries are only ever added; Postgres refuses to change or delete one. Exit code 0.

Examples:
  npm run -s longwatch -- audit list
  npm run -s longwatch -- audit list --since -30d --action erasure.
  npm run -s longwatch -- audit list --action erasure.completed --json`;

interface Flags {
  readonly since?: string;
  readonly action?: string;
  readonly limit?: string;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List who did what, newest first.", HELP, io)
    .option("--since <time>", "start: ISO-8601, epoch ms or relative such as -30d (default: all)")
    .option("--action <name>", "one action, or all of a kind: erasure.completed, erasure. (default: all)")
    .option("--limit <n>", `at most so many (default: ${DEFAULT_LIMIT})`)
    .option("--json", "as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const rule = `a whole number from 1 to ${MOST}`;
        const limit = read.integer("limit", flags.limit, rule) ?? DEFAULT_LIMIT;
        if (limit < 1 || limit > MOST) read.wrong("limit", flags.limit, rule);
        const since = flags.since === undefined ? undefined : read.time("since", flags.since);
        read.finish();
        const acts = await withStore(readConfig(), ({ db }) =>
          listAudit(db, { since, action: flags.action, limit }),
        );
        if (flags.json === true) await writeJson(io.stdout, { entries: acts });
        else await writeOut(io.stdout, acts.length === 0 ? "No such entry.\n" : acts.map(describe).join(""));
      }),
    );
}

function describe({ id, at, actor, action, subject, details }: AuditedAct): string {
  const name = (text: string) => shortenText(text, MAX_NAME_CHARS);
  const what = shortenText(JSON.stringify(details), MAX_DETAIL_CHARS);
  return `#${id}  ${showTime(at)} UTC  ${name(actor)}  ${name(action)}  ${name(subject)}${what === "{}" ? "" : `\n    ${what}`}\n`;
}
