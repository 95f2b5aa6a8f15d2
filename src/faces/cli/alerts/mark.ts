import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { many } from "#lib/format.ts";
import { toLine } from "#lib/plain-text.ts";
import { MARKS, type Mark } from "#model/kinds.ts";
import { type MarkResult, markAlert } from "#operations/mark-alert.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor, readText } from "../options/read-actor.ts";
import { readRowId } from "../options/read-row-id.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const MARK_RULE = MARKS.join(" or ");
export const MAX_NOTE_CHARS = 500;
export const AS_OPTION = ["--as <what>", MARK_RULE] as const;

const HELP = `
The hours of an attack leave the rule's history, so that the next attack like it is still a spike. The hours of noise
stay in the history, so that harmless traffic becomes usual. The last mark counts. Longwatch notifies nobody of a mark.
If a rule is often noise, "alerts show" suggests a setting.

Examples:
  npm run -s longwatch -- alerts mark 17 --as attack
  npm run -s longwatch -- alerts mark 17 --as noise --by alice --note "a load test"`;

interface Flags {
  readonly as?: string;
  readonly by?: string;
  readonly note?: string;
  readonly json?: true;
}

export function markCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("mark", "Mark an alert as attack or noise.", HELP, io)
    .usage("[options] <id>")
    .argument("[id]", "the alert's number")
    .option(...AS_OPTION)
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--note <text>", "reason, written to the audit trail")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [id]) => {
        const alertId = readRowId(read, id, "alert");
        const mark = readMark(read, flags.as);
        const by = readActor(read, flags.by);
        const note = readText(read, "note", flags.note, MAX_NOTE_CHARS) ?? null;
        read.finish();
        if (mark === undefined) return;
        const result = await withStore(readConfig(), async (database) => {
          const clock = await readServiceClock(database, io.clock);
          return markAlert(database, { alertId, mark, by, note, atMs: clock() });
        });
        if (result.kind === "unknown") throw new NotFoundError(`there is no alert ${alertId}`);
        if (flags.json === true) await writeJson(io.stdout, toMarkJson(alertId, result));
        else await writeOut(io.stdout, describeMark(alertId, by, result));
        if (result.kind === "not-a-spike") io.setExitCode(1);
      }),
    );
}

export function toMarkJson(id: number, { kind, ...marked }: MarkResult) {
  return { id, result: kind, ...marked };
}

/** Returns undefined for any other word; the mistake is then noted in `read`. */
export function readMark(read: FlagReader, text: string | undefined): Mark | undefined {
  return MARKS.find((one) => one === text) ?? read.wrong("as", text, MARK_RULE);
}

export function describeMark(alertId: number, by: string, result: MarkResult): string {
  if (result.kind === "unknown") return "";
  if (result.kind === "not-a-spike")
    return `alert #${alertId} has no stored spike; only an alert of a stored spike can be marked.\n`;
  if (result.kind === "unchanged")
    return `alert #${alertId} is already marked as ${result.mark}; nothing was changed.\n`;
  const before = result.before === null ? "" : ` instead of ${result.before}`;
  const hours =
    result.mark === "attack" ? "its hours leave the rule's history" : "its hours stay in the rule's history";
  return `alert #${alertId}: ${many(result.spikeIds.length, "spike")} marked as ${result.mark}${before} by ${toLine(by, 100)}; ${hours}.\n`;
}
