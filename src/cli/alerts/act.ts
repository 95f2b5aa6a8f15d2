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
An acknowledged alert is not repeated; when it gets worse that is still told, and it resolves as ever. A second ack with
another note adds the note.

Examples:
  npm run -s longwatch -- alerts ack 17
  npm run -s longwatch -- alerts ack 17 --by alice --note "on it"`;

const RESOLVE_HELP = `
Every channel that was told of the alert is told of its end, once. The spike behind it is not raised again, a later one
is; an alert of Longwatch about itself fires again while its cause lasts. --as says what it was: see "alerts mark".

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
  const command = storeCommand("ack", "Take an alert on: it is not repeated any more.", ACK_HELP, io);
  return addAct(command, acknowledgeByHand, readConfig, io);
}

export function resolveCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("resolve", "End an alert and tell the channels that it is.", RESOLVE_HELP, io);
  command.option(...AS_OPTION);
  return addAct(command, resolveAlert, readConfig, io);
}

function addAct(command: Command, act: Act, readConfig: () => Config, io: StoreIo): Command {
  return command
    .usage("[options] <id>")
    .argument("[id]", "the alert's number")
    .option("--by <name>", "who does it (default: who runs this)")
    .option("--note <text>", "why, for whoever looks at the alert")
    .option("--json", "as JSON")
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
          // The mark first: said twice it changes nothing, so a command that was cut off can be given again.
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

/** As `POST /api/v1/alerts/{id}/ack` answers. */
function toJson(id: number, result: Exclude<ActResult, { kind: "unknown" }>, marked: MarkResult | null) {
  const channels = result.kind === "done" ? result.channels : [];
  const acted = { id, state: result.state, result: result.kind, channels };
  return marked === null ? acted : { ...acted, marked: toMarkJson(id, marked) };
}

function describe(alertId: number, by: string, result: Exclude<ActResult, { kind: "unknown" }>): string {
  if (result.kind === "noted") {
    const whose = result.by === null ? "" : ` by ${toLine(result.by, 100)}`;
    return `alert #${alertId} is acknowledged${whose} already; the note of ${toLine(by, 100)} was added.\n`;
  }
  if (result.kind === "unchanged")
    return `alert #${alertId} is ${result.state} already: nothing was changed.\n`;
  const told = result.channels.map((channel) => toLine(channel, 60)).join(", ");
  const who =
    result.state === "acknowledged"
      ? ""
      : told === ""
        ? "; no channel had been told of it"
        : `; to be told: ${told}`;
  return `alert #${alertId} is ${result.state} by ${toLine(by, 100)}${who}.\n`;
}
