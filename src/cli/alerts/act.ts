import type { Command } from "commander";
import type { Database } from "../../../db/client.ts";
import type { Config } from "../../config/config.ts";
import { toLine } from "../../lib/plain-text.ts";
import {
  type ActResult,
  type AlertAct,
  acknowledgeByHand,
  resolveAlert,
} from "../../operations/act-on-alert.ts";
import { type MarkResult, markAlert } from "../../operations/mark-alert.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor, readText } from "../options/read-actor.ts";
import { readRowId } from "../options/read-row-id.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { AS_OPTION, describeMark, MAX_NOTE_CHARS, readMark, toMarkJson } from "./mark.ts";

const ACK_HELP = `
Longwatch sends no reminders for an acknowledged alert. If the alert gets worse, its channels are still notified. The
alert resolves as usual. A second ack with another note adds that note.

Examples:
  npm run -s longwatch -- alerts ack 17
  npm run -s longwatch -- alerts ack 17 --by alice --note "on it"`;

const RESOLVE_HELP = `
Longwatch notifies every channel that was notified of the alert, once. The spike of the alert raises no alert again; a
later spike does. An alert of Longwatch about itself fires again if its cause lasts. --as marks the alert as attack or
noise: see "alerts mark".

Examples:
  npm run -s longwatch -- alerts resolve 17
  npm run -s longwatch -- alerts resolve 17 --by alice --note "a load test" --as noise`;

interface Flags {
  readonly by?: string;
  readonly note?: string;
  readonly as?: string;
  readonly json?: true;
}

type Act = (database: Database, act: AlertAct) => Promise<ActResult>;

export function ackCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand(
    "ack",
    "Acknowledge an alert: Longwatch sends no more reminders.",
    ACK_HELP,
    io,
  );
  return addAct(command, acknowledgeByHand, readConfig, io);
}

export function resolveCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("resolve", "Resolve an alert and notify its channels.", RESOLVE_HELP, io);
  command.option(...AS_OPTION);
  return addAct(command, resolveAlert, readConfig, io);
}

function addAct(command: Command, act: Act, readConfig: () => Config, io: StoreIo): Command {
  return command
    .usage("[options] <id>")
    .argument("[id]", "the alert's number")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--note <text>", "reason, shown with the alert")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [id]) => {
        const alertId = readRowId(read, id, "alert");
        const by = readActor(read, flags.by);
        const note = readText(read, "note", flags.note, MAX_NOTE_CHARS) ?? null;
        const mark = flags.as === undefined ? undefined : readMark(read, flags.as);
        read.finish();
        const { result, marked } = await withStore(readConfig(), async (database) => {
          const clock = await readServiceClock(database, io.clock);
          const person = { alertId, by, note, atMs: clock() };
          // The mark comes first. Marking twice changes nothing, so an interrupted command can be repeated.
          const marked = mark === undefined ? null : await markAlert(database, { ...person, mark });
          return { marked, result: await act(database, person) };
        });
        if (result.kind === "unknown") throw new NotFoundError(`there is no alert ${alertId}`);
        if (flags.json === true) await writeJson(io.stdout, toJson(alertId, result, marked));
        else
          await writeOut(
            io.stdout,
            `${describe(alertId, by, result)}${marked === null ? "" : describeMark(alertId, by, marked)}`,
          );
      }),
    );
}

/** Returns the answer of `POST /api/v1/alerts/{id}/ack`. */
function toJson(id: number, result: Exclude<ActResult, { kind: "unknown" }>, marked: MarkResult | null) {
  const channels = result.kind === "done" ? result.channels : [];
  const acted = { id, state: result.state, result: result.kind, channels };
  return marked === null ? acted : { ...acted, marked: toMarkJson(id, marked) };
}

function describe(alertId: number, by: string, result: Exclude<ActResult, { kind: "unknown" }>): string {
  if (result.kind === "noted") {
    const whose = result.by === null ? "" : ` by ${toLine(result.by, 100)}`;
    return `alert #${alertId} is already acknowledged${whose}; the note of ${toLine(by, 100)} was added.\n`;
  }
  if (result.kind === "unchanged")
    return `alert #${alertId} is already ${result.state}; nothing was changed.\n`;
  const channels = result.channels.map((channel) => toLine(channel, 60)).join(", ");
  const who =
    result.state === "acknowledged"
      ? ""
      : channels === ""
        ? "; no channel had been notified of the alert"
        : `; channels to be notified: ${channels}`;
  return `alert #${alertId} is ${result.state} by ${toLine(by, 100)}${who}.\n`;
}
