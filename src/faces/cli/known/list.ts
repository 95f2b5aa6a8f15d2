import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { listKnownSources } from "#db/detection/known-sources.ts";
import { toLine } from "#lib/plain-text.ts";
import { showTime } from "#lib/show-time.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";
import { fileToItem, type KnownItem, rowToItem } from "./known-item.ts";

const HELP = `
Sources of detection.known_sources come first. They have no number and are changed in the configuration file.

Examples:
  npm run -s longwatch -- known list
  npm run -s longwatch -- known list --json`;

export function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List known sources.", HELP, io)
    .option("--json", "print JSON")
    .action(
      storeAction<{ readonly json?: true }>(io, async (flags, read) => {
        read.finish();
        const config = readConfig();
        const rows = await withStore(config, ({ db }) => listKnownSources(db));
        const items = [...config.alerting.detection.knownSources.map(fileToItem), ...rows.map(rowToItem)];
        if (flags.json === true) await writeJson(io.stdout, { items });
        else if (items.length === 0) await writeOut(io.stdout, "No known sources.\n");
        else await writeOut(io.stdout, drawTable(HEAD, items.map(toRow), pickPaint(io)));
      }),
    );
}

const HEAD = ["SOURCE", "KIND", "PATTERN", "ZONES", "UNTIL (UTC)", "BY", "REASON"];

/** Pattern, name and reason are untrusted text. */
function toRow({ id, kind, pattern, zoneIds, until, createdBy, reason }: KnownItem): string[] {
  return [
    id === null ? "file" : `#${id}`,
    kind,
    toLine(pattern, 100),
    zoneIds?.join() ?? "all",
    until === null ? "-" : showTime(Date.parse(until)),
    createdBy === null ? "-" : toLine(createdBy, 100),
    toLine(reason, 200),
  ];
}
