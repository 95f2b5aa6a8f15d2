import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { listAlerts } from "#db/alerting/alert-reports.ts";
import type { Queryable } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import { toLine } from "#lib/plain-text.ts";
import { type StateAct, UNRESOLVED_STATES } from "#model/kinds.ts";
import { type ActResult, acknowledgeByHand, resolveAlert } from "#operations/act-on-alert.ts";
import { type MarkResult, markAlert } from "#operations/mark-alert.ts";
import { writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor, readText } from "../options/read-actor.ts";
import { readRowIds } from "../options/read-row-id.ts";
import { requireAlert, requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { AS_OPTION, describeMark, MAX_NOTE_CHARS, readMark, toMarkJson } from "./mark.ts";
import { addFilterOptions, type FilterFlags, readFilter } from "./read-filter.ts";

const ACK_HELP = `
Longwatch sends no reminders for an acknowledged alert. If the alert gets worse, its channels are still notified. The
alert resolves as usual. Options such as --zone select the firing alerts that match all of them. A second ack with another note adds that note.

Examples:
  npm run -s longwatch -- alerts ack 17 18 19
  npm run -s longwatch -- alerts ack --zone 101 --severity info,warning
  npm run -s longwatch -- alerts ack 17 --by alice --note "on it"`;

const RESOLVE_HELP = `
Longwatch notifies every channel that was notified of the alert, once. The spike of the alert raises no alert again; a
later spike does. An alert of Longwatch about itself fires again if its cause lasts. --as marks the alert as attack or
noise: see "alerts mark". Options such as --zone select the unresolved alerts that match all of them.

Examples:
  npm run -s longwatch -- alerts resolve 17 18
  npm run -s longwatch -- alerts resolve 17 --by alice --note "a load test" --as noise`;

interface Flags extends FilterFlags {
  readonly by?: string;
  readonly note?: string;
  readonly as?: string;
  readonly json?: true;
}

/** The most alerts that one command changes. */
const MOST_ALERTS = 1_000;

export function ackCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("ack", "Acknowledge alerts: Longwatch sends no more reminders.", ACK_HELP, io);
  return addAct(command, "ack", readConfig, io);
}

export function resolveCommand(readConfig: () => Config, io: StoreIo): Command {
  const command = storeCommand("resolve", "Resolve alerts and notify their channels.", RESOLVE_HELP, io);
  command.option(...AS_OPTION);
  return addAct(command, "resolve", readConfig, io);
}

function addAct(command: Command, act: StateAct, readConfig: () => Config, io: StoreIo): Command {
  command
    .usage("[options] [<id> ...]")
    .argument("[ids...]", "numbers of alerts; or options that select them");
  return addFilterOptions(command)
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--note <text>", "reason, shown with the alert")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, operands) => {
        const which = readWhich(read, flags, operands);
        const by = readActor(read, flags.by);
        const note = readText(read, "note", flags.note, MAX_NOTE_CHARS) ?? null;
        const mark = flags.as === undefined ? undefined : readMark(read, flags.as);
        read.finish();
        const config = readConfig();
        const done = await withStore(config, async (database) => {
          const { db } = database;
          const atMs = (await readServiceClock(database, io.clock))();
          const alertIds = await findIds(db, config, act, which);
          const done: Done[] = [];
          for (const alertId of alertIds) {
            const person = { alertId, by, note, atMs };
            // The mark comes first. Marking twice changes nothing, so an interrupted command can be repeated.
            const marked = mark === undefined ? null : await markAlert(database, { ...person, mark });
            const result = await (act === "ack" ? acknowledgeByHand : resolveAlert)(database, person);
            if (result.kind === "unknown") {
              // The others are still changed.
              if (alertIds.length === 1) throw new NotFoundError(`there is no alert ${alertId}`);
              io.setExitCode(1);
              done.push({ alertId, result: null, marked: null });
            } else done.push({ alertId, result, marked });
          }
          return done;
        });
        const shown = done.map(toJson);
        if (flags.json === true)
          await writeJson(io.stdout, "ids" in which && shown.length === 1 ? shown[0] : { items: shown });
        else
          await writeOut(
            io.stdout,
            done.length === 0
              ? "No alert matches; nothing was changed.\n"
              : done.map((one) => describeDone(by, one)).join(""),
          );
      }),
    );
}

interface Done {
  readonly alertId: number;
  /** Null if there is no such alert. */
  readonly result: Exclude<ActResult, { kind: "unknown" }> | null;
  readonly marked: MarkResult | null;
}

type Which = { readonly ids: readonly number[] } | { readonly filter: ReturnType<typeof readFilter> };

/** Reads numbers, or options that select alerts. Neither is a mistake: it would change every alert. */
function readWhich(read: FlagReader, flags: Flags, operands: readonly string[]): Which {
  const filter = readFilter(read, flags);
  const { states: _states, ...chosen } = filter;
  const isFiltered = Object.values(chosen).some((value) => value !== undefined);
  if (isFiltered && operands.length > 0)
    read.mistakes.push("numbers of alerts must be given without options that select alerts");
  return isFiltered ? { filter } : { ids: readRowIds(read, operands, "alert") };
}

async function findIds(
  db: Queryable,
  config: Config,
  act: StateAct,
  which: Which,
): Promise<readonly number[]> {
  if ("ids" in which) return which.ids;
  const { filter } = which;
  await requireZones(db, config, filter.zoneId === undefined ? [] : [filter.zoneId]);
  if (filter.groupId !== undefined) await requireAlert(db, "group", filter.groupId);
  const states = act === "ack" ? (["firing"] as const) : UNRESOLVED_STATES;
  const rows = await listAlerts(db, { ...filter, states, limit: MOST_ALERTS + 1 });
  if (rows.length > MOST_ALERTS)
    throw new UsageError([`these options select more than ${MOST_ALERTS} alerts; select fewer`]);
  return rows.map(({ id }) => id);
}

/** Returns the answer of `POST /api/v1/alerts/{id}/ack`. */
function toJson({ alertId: id, result, marked }: Done) {
  if (result === null) return { id, result: "refused", state: null, channels: [] };
  const channels = result.kind === "done" ? result.channels : [];
  const acted = { id, state: result.state, result: result.kind, channels };
  return marked === null ? acted : { ...acted, marked: toMarkJson(id, marked) };
}

function describeDone(by: string, { alertId, result, marked }: Done): string {
  if (result === null) return `there is no alert ${alertId}; nothing was changed.\n`;
  return `${describe(alertId, by, result)}${marked === null ? "" : describeMark(alertId, by, marked)}`;
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
