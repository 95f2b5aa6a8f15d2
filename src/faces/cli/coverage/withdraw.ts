import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import { HOUR_MS } from "#lib/units.ts";
import { startOfHour } from "#model/horizon.ts";
import type { Span } from "#model/span.ts";
import { showIds } from "#operations/verify/show-ids.ts";
import {
  type AskedWithdrawal,
  type Withdrawal,
  WithdrawalRefusedError,
  type WithdrawDeps,
  withdrawEvents,
} from "#operations/withdraw-events.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { withEdge } from "../edge/open-edge.ts";
import { writeJson } from "../edge/write-json.ts";
import { readReason } from "../erase/read-erase-flags.ts";
import { readActor } from "../options/read-actor.ts";
import { gather } from "../options/read-list.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-span.ts";
import { requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const HELP = `
Removes stored events that are not the zone's own, such as events of another zone that the platform showed by mistake. The
command asks the platform again (search, counts, and the list of the day) and removes only events that the platform does
not show. Without --yes it only prints what it would remove. The records of the events are removed too. The audit trail
gets who, why and how many. The counts follow, and the hours are proven anew. "verify --ids" names such events.
An hour that the platform has forgotten cannot be checked: name the ids and add --unchecked. Exit code 0; 1 if refused.

Examples:
  npm run -s longwatch -- coverage withdraw --zone 101 --hour 2026-11-20T10:00 --all-unshown --reason "events of zone 102"
  npm run -s longwatch -- coverage withdraw --zone 101 --hour -5h --id 0a1b --id 2c3d --reason "ticket 4711" --yes
  npm run -s longwatch -- coverage withdraw --zone 101 --from 2026-11-20 --to 2026-11-21 --ids-file ids.txt --unchecked --reason "ticket 4711"`;

interface Flags extends SpanFlags {
  readonly hour?: string;
  readonly id?: readonly string[];
  readonly idsFile?: string;
  readonly allUnshown?: true;
  readonly unchecked?: true;
  readonly reason?: string;
  readonly by?: string;
  readonly yes?: true;
  readonly json?: true;
}

/** `longwatch coverage withdraw`: removes stored events that the platform does not show. */
export function withdrawCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("withdraw", "Remove stored events that the platform does not show.", HELP, io)
    .option("--zone <id>", "shield zone (required)")
    .option("--hour <time>", "a time in the hour: ISO-8601, epoch ms or relative such as -5h")
    .option("--from <time>", "instead of --hour: start, a full hour")
    .option("--to <time>", "end, a full hour of the same UTC day or its end")
    .option("--id <log id>", "an event; repeat for more", gather)
    .option("--ids-file <file>", "a file with one log id per line")
    .option("--all-unshown", "every event of the span that the platform does not show")
    .option("--unchecked", "also named events of hours that the platform has forgotten")
    .option("--reason <text>", "reason, written to the audit trail (required)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--yes", "remove the events; without it, only print them")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (_, read) => {
        // The command above has --zone, --from, --to and --json too, and takes them first.
        const flags = command.optsWithGlobals<Flags>();
        const asked: AskedWithdrawal = {
          zoneId: readZone(read, flags, true) ?? 0,
          ...readHours(read, flags),
          logIds: readIds(read, flags),
          isUnchecked: flags.unchecked === true,
        };
        const reason = readReason(read, flags.reason) ?? "";
        if (flags.reason === undefined) read.wrong("reason", undefined, "the reason for the audit trail");
        const by = { actor: readActor(read, flags.by), reason };
        read.finish();
        const config = readConfig();
        await withStore(config, async (database, databaseUrl) => {
          await requireZones(database.db, config, [asked.zoneId]);
          const clock = await readServiceClock(database, io.clock);
          const run = (edge: WithdrawDeps["edge"]) =>
            withdraw({ io, deps: { database, edge, clock } }, { asked, by, flags });
          await (config.edge.url === null ? run(null) : withEdge(config, databaseUrl, run));
        });
      }),
    );
  return command;
}

async function withdraw(
  { io, deps }: { readonly io: StoreIo; readonly deps: WithdrawDeps },
  {
    asked,
    by,
    flags,
  }: {
    readonly asked: AskedWithdrawal;
    readonly by: { actor: string; reason: string };
    readonly flags: Flags;
  },
): Promise<void> {
  const { signal } = new AbortController();
  const found = await withdrawEvents(deps, asked, flags.yes === true ? by : null, signal).catch(
    (thrown: unknown) => {
      if (!(thrown instanceof WithdrawalRefusedError) || thrown.fault === null) throw thrown;
      const { field, rule } = thrown.fault;
      throw new UsageError([`${field === "logIds" ? "the ids" : `--${field}`} ${rule}`]);
    },
  );
  if (flags.json === true) await writeJson(io.stdout, found);
  else await writeOut(io.stdout, describe(asked, found));
}

function describe(
  { zoneId, from, to }: AskedWithdrawal,
  { logIds, shown, unknown, removed }: Withdrawal,
): string {
  const what =
    removed === null
      ? `${many(logIds.length, "event")} that the platform does not show`
      : `${many(removed.events, "event")} and ${many(removed.records, "record")} removed`;
  return [
    `zone ${zoneId}, ${showTime(from)} to ${showTime(to)} UTC: ${what}`,
    showIds("  ids:", logIds),
    showIds("  not removed, because the platform shows them:", shown),
    showIds("  not stored in this span:", unknown),
    removed === null && logIds.length > 0 ? "Nothing was removed. Add --yes to remove these events." : null,
    "",
  ]
    .filter((line) => line !== null)
    .join("\n");
}

function readHours(read: FlagReader, flags: Flags): Span {
  if (flags.hour === undefined) return readSpan(read, flags);
  if (flags.from !== undefined || flags.to !== undefined)
    read.mistakes.push("either --hour or --from and --to must be given");
  const from = startOfHour(read.time("hour", flags.hour) ?? 0);
  return { from, to: from + HOUR_MS };
}

/** Null: every event that the platform does not show. */
function readIds(read: FlagReader, { id = [], idsFile, allUnshown }: Flags): string[] | null {
  const named = [...id, ...(idsFile === undefined ? [] : readLines(read, idsFile))];
  if (named.length > 0 === (allUnshown === true))
    read.mistakes.push("either --all-unshown, or --id or --ids-file with ids must be given");
  return allUnshown === true ? null : named;
}

function readLines(read: FlagReader, file: string): string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "");
  } catch {
    read.wrong("ids-file", file, "a file that can be read");
    return [];
  }
}
