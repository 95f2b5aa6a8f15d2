import { isNeedless } from "#db/delivery/drop-notifications.ts";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import type { Paint } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { describeAdvice } from "#delivery/rules/message/describe-alert.ts";
import { many, showTime } from "#lib/format.ts";
import { OWN_COMMAND } from "#lib/process.ts";
import { toLine, toLines } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { describeUnsent, isEnding, MUTE_WORDS } from "#model/words.ts";
import type { AlertDetail } from "./alert-detail.ts";

/** The limits of the whole recommendation. The message in its frame shows only the beginning. */
const WHOLE_ADVICE = { maxLines: 400, maxChars: 40_000 };
const FRAMED_ADVICE_CHARS = 1_200;
const FRAMED_ADVICE_LINES = 12;
/** Other rule ids are not suggested for a configuration file, because they could break its syntax. */
const PLAIN_RULE = /^[A-Za-z0-9_.:-]{1,64}$/;

interface Terminal {
  readonly columns: number;
  readonly paint: Paint;
}

/** Returns the alert in words: its message, marks, transitions, silences and deliveries. */
export function sayAlert(alert: AlertDetail, terminal: Terminal): string {
  const { id, state, quietSince, unsent, message = null, spikeId, transitions, silenced, deliveries } = alert;
  const parts = [
    message === null ? "The alert's message cannot be read.\n" : draw(message, terminal),
    message === null ? "" : sayAdvice(message),
    alert.attackers.length === 0 ? "" : section("Attackers", describeAttackers(alert)),
    spikeId === null ? "" : section("Feedback", sayMarks(alert)),
    section("Transitions", transitions.map(sayTransition)),
    silenced.length === 0 ? "" : section("Silenced", silenced.map(describeSilenced)),
    section("Deliveries", deliveries.map(describeDelivery)),
  ];
  const quiet = quietSince === null ? "" : `, quiet since ${showTime(quietSince)} UTC`;
  const muted = unsent === null ? "" : `, ${MUTE_WORDS[unsent]}`;
  return `alert #${id}   ${state}${quiet}${muted}\n${parts.filter((part) => part !== "").join("\n")}`;
}

/** Returns the message as the terminal channel prints it, always with all facts. An update or a resolve alone leaves facts out. */
function draw(message: AlertMessage, { columns, paint }: Terminal): string {
  const options = { columns, paint, command: OWN_COMMAND };
  const ending = isEnding(message.reason) ? renderTerminal(message, options) : "";
  return `${renderTerminal({ ...message, reason: "first" }, options)}${ending}`;
}

function sayAdvice(message: AlertMessage): string {
  const { heading, text, isMissing } = describeAdvice(message) ?? { heading: "", text: "", isMissing: true };
  if (isMissing) return "";
  const lines = toLines(text, WHOLE_ADVICE);
  const isFramed = text.length <= FRAMED_ADVICE_CHARS && lines.length <= FRAMED_ADVICE_LINES;
  return isFramed ? "" : section(heading, lines);
}

/** If the rule is often marked as no attack, adds configuration lines that raise its threshold. */
function sayMarks({ mark, markedAt, zoneId, ruleId, suggestedZ: suggested }: AlertDetail): string[] {
  const at = markedAt === null ? "" : `, ${showTime(markedAt)} UTC`;
  const said = mark === null ? "not marked" : `marked as ${mark}${at}`;
  if (suggested === null || ruleId === null || !PLAIN_RULE.test(ruleId)) return [said];
  return [
    said,
    `The rule was marked as no attack ${suggested.marked} times in the last 30 days. With z ${suggested.z} instead of ${suggested.now},` +
      ` ${suggested.silenced} of these spikes would not have opened. To set it, put these lines in front of the other overrides in the configuration file:`,
    "  detection:",
    "    overrides:",
    `      - zone: [${zoneId}]`,
    `        rule: ["${ruleId}"]`,
    `        z: ${suggested.z}`,
  ];
}

/** Keys are hostile text. */
function describeAttackers({ attackers, unnamedAttackers }: AlertDetail): string[] {
  const lines = attackers.map(({ key, state, startedAt, lastSeenAt, finding }) =>
    [
      state.padEnd(8),
      `${showTime(startedAt)} to ${showTime(lastSeenAt)} UTC`,
      toLine(finding.includes(key) ? finding : `${key}: ${finding}`, 300),
    ].join("  "),
  );
  return unnamedAttackers === 0 ? lines : [...lines, `and ${many(unnamedAttackers, "further attacker")}`];
}

function sayTransition(one: AlertDetail["transitions"][number]): string {
  const { transition, at, reason, severity, channels, by, to, note } = one;
  const facts = [
    severity ?? "",
    channels.length === 0 ? "" : `to ${channels.map((channel) => toLine(channel, 60)).join(", ")}`,
    ...describeUnsent(one).map((why) => toLine(why, 300)),
    to === null ? "" : to === "" ? "to nobody" : `to ${toLine(to, 100)}`,
    by === null ? "" : `by ${toLine(by, 100)}`,
    note === null ? "" : `"${toLine(note, 500)}"`,
  ];
  return [`${transition}`.padStart(3), `${showTime(at)} UTC`, toLine(reason, 20).padEnd(12), ...facts]
    .filter((part) => part !== "")
    .join("  ");
}

function describeSilenced({
  id,
  createdBy,
  reason,
  expiresAt,
  from,
  to,
}: AlertDetail["silenced"][number]): string {
  const end = to === null ? `${showTime(expiresAt)} UTC, in force now` : `${showTime(to)} UTC`;
  return `${showTime(from)} to ${end}  by silence #${id} of ${toLine(createdBy, 100)}  "${toLine(reason, 500)}"`;
}

function describeDelivery(delivery: AlertDetail["deliveries"][number]): string {
  const { channel, transition, reason, state, attempts, nextAttemptAt, deliveredAt, lastError } = delivery;
  const next = nextAttemptAt === null ? "" : `, next attempt ${showTime(nextAttemptAt)} UTC`;
  const givenUp = isNeedless(lastError) ? "not needed" : "given up";
  const when =
    deliveredAt !== null
      ? `delivered ${showTime(deliveredAt)} UTC`
      : state === "undeliverable"
        ? givenUp
        : `${state}${next}`;
  const tries = attempts === 0 ? "" : `, ${many(attempts, "attempt")}`;
  const error = lastError === null ? "" : `  ${toLine(lastError, 300)}`;
  return `${toLine(channel, 60).padEnd(12)}  ${transition} ${reason.padEnd(8)}  ${when}${tries}${error}`;
}

function section(title: string, lines: readonly string[]): string {
  const body = lines.length === 0 ? ["none"] : lines;
  return `${title}\n${body.map((line) => `  ${line}\n`).join("")}`;
}
