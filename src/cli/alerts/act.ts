import type { Command } from "commander";
import type { Database } from "../../../db/client.ts";
import {
  type ActResult,
  type AlertAct,
  acknowledgeByHand,
  resolveAlert,
} from "../../../jobs/act-on-alert.ts";
import { toLine } from "../../channel/plain-text.ts";
import type { Config } from "../../config.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../not-found-error.ts";
import { withStore } from "../open-store.ts";
import { readActor, readText } from "../read-actor.ts";
import { readRowId } from "../read-row-id.ts";
import { readServiceClock } from "../service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store-command.ts";

const MAX_NOTE_CHARS = 500;

const ACK_HELP = `
An acknowledged alert is not repeated; when it gets worse that is still told, and it resolves as ever.

Examples:
  npm run -s longwatch -- alerts ack 17
  npm run -s longwatch -- alerts ack 17 --by alice --note "on it"`;

const RESOLVE_HELP = `
Every channel that was told of the alert is told of its end, once. The spike behind it is not raised again, a later one
is; an alert of Longwatch about itself fires again while its cause lasts.

Examples:
  npm run -s longwatch -- alerts resolve 17
  npm run -s longwatch -- alerts resolve 17 --by alice --note "a load test"`;

interface Flags {
  readonly by?: string;
  readonly note?: string;
  readonly json?: true;
}

type Act = (database: Database, act: AlertAct) => Promise<ActResult>;

export function ackCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("ack", "Take an alert on: it is not repeated any more.", ACK_HELP, io);
  return addAct(command, acknowledgeByHand, readConfig, io);
}

export function resolveCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("resolve", "End an alert and tell the channels that it is.", RESOLVE_HELP, io);
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
        read.finish();
        const result = await withStore(readConfig(), async (database) => {
          const clock = await readServiceClock(database, io.clock);
          return act(database, { alertId, by, note, atMs: clock() });
        });
        if (result.kind === "unknown") throw new NotFoundError(`there is no alert ${alertId}`);
        if (flags.json === true) await writeJson(io.stdout, { alertId, ...result });
        else await writeOut(io.stdout, describe(alertId, by, result));
      }),
    );
}

function describe(alertId: number, by: string, result: Exclude<ActResult, { kind: "unknown" }>): string {
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
