import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { type AlertDelivery, readAlert } from "#db/alerting/alert-reports.ts";
import { type AlertMarks, readMarks } from "#db/alerting/marks.ts";
import { isNeedless } from "#db/service/last-errors.ts";
import { type AlertDetails, readAlertDetails, toAlertDetail } from "#faces/http/routes/v1/to-alert-item.ts";
import { many } from "#lib/format.ts";
import { OWN_COMMAND } from "#lib/own-command.ts";
import { toLine, toLines } from "#lib/plain-text.ts";
import { showTime } from "#lib/show-time.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { listSilenced, type Silenced } from "#operations/list-silenced.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { type Transition, toAlertRecord } from "#stages/alerting/alert-record.ts";
import { renderTerminal } from "#stages/delivery/channels/terminal/render-terminal.ts";
import { paintColour, paintPlain } from "#stages/delivery/channels/terminal/terminal-style.ts";
import {
  ADVICE_HEADING,
  describeAdvice,
  describeMissingAdvice,
} from "#stages/delivery/message/describe-alert.ts";
import { sensitivityOf } from "#stages/detection/detection-settings.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readRowId } from "../options/read-row-id.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { describeMarks } from "./describe-marks.ts";

const DEFAULT_COLUMNS = 100;
const MARKS_SINCE_MS = 30 * 86_400_000;
/** The limits of the whole recommendation. The message in its frame shows only the beginning. */
const WHOLE_ADVICE = { maxLines: 400, maxChars: 40_000 };
const FRAMED_ADVICE_CHARS = 1_200;
const FRAMED_ADVICE_LINES = 12;

const HELP = `
Shows the message of the alert, every transition and every delivery. --json prints the answer of GET /api/v1/alerts/{id}
with the mark.

Examples:
  npm run -s longwatch -- alerts show 17
  npm run -s longwatch -- alerts show 17 --json`;

interface Flags {
  readonly json?: true;
}

export function showCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("show", "Show one alert with its transitions and deliveries.", HELP, io)
    .usage("[options] <id>")
    .argument("[id]", "the alert's number")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [id]) => {
        const alertId = readRowId(read, id, "alert");
        read.finish();
        const config = readConfig();
        const found = await withStore(config, async (database) => {
          const { db } = database;
          const row = await readAlert(db, alertId);
          if (row === null) return null;
          const clock = await readServiceClock(database, io.clock);
          const nowMs = clock();
          const marks = await readMarks(db, row, nowMs - MARKS_SINCE_MS);
          return { ...(await readAlertDetails(db, row, nowMs)), marks, nowMs };
        });
        if (found === null) throw new NotFoundError(`there is no alert ${alertId}`);
        if (flags.json === true) await writeJson(io.stdout, toJson(found));
        else await writeOut(io.stdout, describe(found, config, io));
      }),
    );
}

interface Found extends AlertDetails {
  readonly marks: AlertMarks;
  readonly nowMs: number;
}

function toJson({ marks, nowMs, ...found }: Found) {
  const markedAt = marks.markedAt?.toISOString() ?? null;
  return { ...toAlertDetail(found, false, nowMs), mark: marks.mark, markedAt };
}

function describe(
  { row, marks, deliveries, silences, nowMs }: Found,
  { alerting }: Config,
  io: StoreIo,
): string {
  const { zoneId, ruleId } = row;
  const series =
    zoneId === null || ruleId === null
      ? null
      : { zoneId, ruleId, ...sensitivityOf(alerting.detection, zoneId, ruleId) };
  const message = parseDetails(row.details).message;
  const { transitions } = toAlertRecord(row);
  const silenced = listSilenced(row, silences, nowMs);
  const parts = [
    message === null ? "The alert's message cannot be read.\n" : draw(message, io),
    message === null ? "" : showAdvice(message),
    row.spikeId === null ? "" : section("Feedback", describeMarks(marks, series)),
    section("Transitions", transitions.map(describeTransition)),
    silenced.length === 0 ? "" : section("Silenced", silenced.map(describeSilenced)),
    section("Deliveries", deliveries.map(describeDelivery)),
  ];
  const quiet = row.quietSince === null ? "" : `, quiet since ${showTime(row.quietSince.getTime())} UTC`;
  return `alert #${row.id}   ${row.state}${quiet}\n${parts.filter((part) => part !== "").join("\n")}`;
}

/** Returns the message as the terminal channel prints it, always with all facts. An update or a resolve alone leaves facts out. */
function draw(message: AlertMessage, { stdout }: StoreIo): string {
  const isTTY = stdout.isTTY === true;
  const columns = "columns" in stdout && typeof stdout.columns === "number" ? stdout.columns : 0;
  const options = {
    columns: isTTY && columns > 0 ? columns : DEFAULT_COLUMNS,
    paint: isTTY && stdout.hasColors?.() !== false ? paintColour : paintPlain,
    command: OWN_COMMAND,
  };
  const ending = message.reason === "resolved" ? renderTerminal(message, options) : "";
  return `${renderTerminal({ ...message, reason: "first" }, options)}${ending}`;
}

function showAdvice(message: AlertMessage): string {
  if (describeMissingAdvice(message) !== null) return "";
  const text = describeAdvice(message);
  const lines = toLines(text, WHOLE_ADVICE);
  const isFramed = text.length <= FRAMED_ADVICE_CHARS && lines.length <= FRAMED_ADVICE_LINES;
  return isFramed ? "" : section(ADVICE_HEADING, lines);
}

function describeTransition({
  transition,
  at,
  reason,
  severity,
  channels,
  silencedBy,
  by,
  note,
}: Transition) {
  const facts = [
    severity ?? "",
    channels.length === 0 ? "" : `to ${channels.map((channel) => toLine(channel, 60)).join(", ")}`,
    silencedBy === null ? "" : `silenced by #${silencedBy}`,
    by === undefined ? "" : `by ${toLine(by, 100)}`,
    note === undefined ? "" : `"${toLine(note, 500)}"`,
  ];
  return [`${transition}`.padStart(3), `${showTime(at)} UTC`, toLine(reason, 20).padEnd(12), ...facts]
    .filter((part) => part !== "")
    .join("  ");
}

function describeSilenced({ silence, fromMs, toMs }: Silenced): string {
  const end = toMs === null ? `${showTime(silence.expiresAtMs)} UTC, in force now` : `${showTime(toMs)} UTC`;
  const { id, createdBy, reason } = silence;
  return `${showTime(fromMs)} to ${end}  by silence #${id} of ${toLine(createdBy, 100)}  "${toLine(reason, 500)}"`;
}

function describeDelivery(delivery: AlertDelivery): string {
  const { channel, transition, reason, state, attempts, nextAttemptAt, deliveredAt, lastError } = delivery;
  const when =
    deliveredAt !== null
      ? `delivered ${showTime(deliveredAt.getTime())} UTC`
      : state === "undeliverable"
        ? isNeedless(lastError)
          ? "not needed"
          : "given up"
        : `${state}, next attempt ${showTime(nextAttemptAt.getTime())} UTC`;
  const tries = attempts === 0 ? "" : `, ${many(attempts, "attempt")}`;
  const error = lastError === null ? "" : `  ${toLine(lastError, 300)}`;
  return `${toLine(channel, 60).padEnd(12)}  ${transition} ${reason.padEnd(8)}  ${when}${tries}${error}`;
}

function section(title: string, lines: readonly string[]): string {
  const body = lines.length === 0 ? ["none"] : lines;
  return `${title}\n${body.map((line) => `  ${line}\n`).join("")}`;
}
