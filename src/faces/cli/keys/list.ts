import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { type ListedApiKey, listApiKeys } from "#db/keys/api-keys.ts";
import { toKeyItem } from "#faces/http/keys/key-item.ts";
import { ago } from "#lib/ago.ts";
import { escapeText } from "#lib/escape-text.ts";
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
import { statusOf } from "./describe-key.ts";

const DEFAULT_LIMIT = 1_000;

const HELP = `
The newest key comes first. The secret part of a key is stored nowhere and cannot be shown. --json prints the answer of
GET /api/v1/keys.

Examples:
  npm run -s longwatch -- keys list
  npm run -s longwatch -- keys list --all --json`;

interface Flags extends PageFlags {
  readonly all?: true;
  readonly json?: true;
}

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List keys.", HELP, io)
    .option("--all", "also revoked and expired keys")
    .option("--limit <n>", `show at most this many (default: ${DEFAULT_LIMIT})`)
    .option(...AFTER_OPTION)
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const asked = readPage(read, flags, DEFAULT_LIMIT);
        read.finish();
        const { limit, beforeId = null } = oneMore(asked);
        const query = { beforeId, withDead: flags.all === true, limit };
        const rows = await withStore(readConfig(), ({ db }) => listApiKeys(db, query));
        if (flags.json === true) return writeJson(io.stdout, toListPage(rows, asked, toKeyItem));
        const { items, next } = toListPage(rows, asked, (row) => row);
        const table = drawTable(HEAD, items.map(toRow(io.clock())), pickPaint(io));
        await writeOut(io.stdout, items.length === 0 ? "No keys.\n" : `${table}${describeNext(next)}`);
      }),
    );
}

const HEAD = ["KEY", "NAME", "ROLE", "ZONES", "VALID UNTIL (UTC)", "LAST USED"];

function toRow(nowMs: number) {
  return (key: ListedApiKey): Cell[] => {
    const { keyId, name, roles, zoneIds, isMasked, lastUsedAt, isLive } = key;
    return [
      keyId,
      escapeText(name),
      `${roles.join(", ")}${isMasked ? ", masked" : ""}`,
      zoneIds === null ? "all" : zoneIds.join(", "),
      { text: statusOf(key), style: isLive ? "green" : "dim" },
      lastUsedAt === null ? "never" : ago(nowMs - lastUsedAt.getTime()),
    ];
  };
}
