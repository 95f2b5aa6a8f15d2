import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { KNOWN_KINDS } from "#model/known-source.ts";
import { isAddressPattern } from "#model/source-traits.ts";
import { addKnownSources } from "#operations/act-on-known-source.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { parseTime, TIME_RULE } from "../edge/parse-time.ts";
import { writeJson } from "../edge/write-json.ts";
import { readActor, readText } from "../options/read-actor.ts";
import { gather } from "../options/read-list.ts";
import { readZone } from "../options/read-span.ts";
import { requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { rowToItem } from "./known-item.ts";

const MAX_CHARS = 300;
const MAX_REASON_CHARS = 500;

const HELP = `
The source series leave the events of a known source out from the next tick on. An alert says how many events were left
out. Rules are counted as before.

Examples:
  npm run -s longwatch -- known add --ip 198.51.100.0/24 --reason "our scanner"
  npm run -s longwatch -- known add --ua "Pingdom*" --zone 101 --until 2026-12-31 --reason "uptime monitor"`;

interface Flags {
  readonly ip?: readonly string[];
  readonly asn?: readonly string[];
  readonly ja4?: readonly string[];
  readonly ua?: readonly string[];
  readonly zone?: string;
  readonly until?: string;
  readonly reason?: string;
  readonly by?: string;
  readonly json?: true;
}

export function addCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("add", "Name sources that are expected.", HELP, io)
    .option("--ip <address>", "an address or a network; repeatable", gather)
    .option("--asn <number>", "a network's number (AS64500); repeatable", gather)
    .option("--ja4 <fingerprint>", "a TLS fingerprint; repeatable", gather)
    .option("--ua <text>", "a user agent; it may end in *; repeatable", gather)
    .option("--zone <id>", "only in this shield zone (default: in all)")
    .option("--until <time>", "the time from which the source counts again (default: never)")
    .option("--reason <text>", "reason (required)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const patterns = readPatterns(read, flags);
        const zoneId = flags.zone === undefined ? null : readZone(read, { zone: flags.zone }, true);
        const expiresAt = readUntil(read, flags.until, io.clock());
        if (flags.reason === undefined)
          read.wrong("reason", undefined, "the reason why the source is expected");
        const reason = readText(read, "reason", flags.reason, MAX_REASON_CHARS) ?? "";
        const by = readActor(read, flags.by);
        read.finish();
        const config = readConfig();
        const rows = await withStore(config, async (database) => {
          if (typeof zoneId === "number") await requireZones(database.db, config, [zoneId]);
          const shared = { zoneId: zoneId ?? null, expiresAt, reason, createdBy: by };
          return addKnownSources(
            database,
            patterns.map((one) => ({ ...one, ...shared })),
            by,
          );
        });
        if (flags.json === true) await writeJson(io.stdout, { items: rows.map(rowToItem) });
        else
          await writeOut(
            io.stdout,
            rows.map(({ id, kind }) => `known source #${id} (${kind}) is added.\n`).join(""),
          );
      }),
    );
}

function readPatterns(read: FlagReader, flags: Flags) {
  const patterns = KNOWN_KINDS.flatMap((kind) =>
    [...new Set(flags[kind])].flatMap((value) => {
      const pattern = readText(read, kind, value, MAX_CHARS);
      if (kind === "ip" && pattern !== undefined && !isAddressPattern(pattern))
        read.wrong("ip", value, "an address or a network such as 198.51.100.0/24");
      return pattern === undefined ? [] : [{ kind, pattern }];
    }),
  );
  if (KNOWN_KINDS.every((kind) => flags[kind] === undefined))
    read.mistakes.push("--ip, --asn, --ja4 or --ua must be given");
  return patterns;
}

function readUntil(read: FlagReader, text: string | undefined, nowMs: number): Date | null {
  if (text === undefined) return null;
  const at = parseTime(text, nowMs);
  if (at !== null && at > nowMs) return new Date(at);
  read.wrong("until", text, `a time in the future: ${TIME_RULE}`);
  return null;
}
