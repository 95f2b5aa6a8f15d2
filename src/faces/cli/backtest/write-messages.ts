import type { EventsReport } from "./replay-events.ts";
import { toCell, writeLines } from "./write-lines.ts";

/** Writes one row per message that would have been sent; `at` is the epoch second of its minute's end. */
export function writeMessages(path: string, { messages }: EventsReport): Promise<void> {
  return writeLines(path, lines(messages));
}

function* lines(messages: EventsReport["messages"]): Generator<string> {
  yield "zone,at,incident,reason,severity,subject,attackers,rules\n";
  for (const { zone, at, incident, reason, severity, subject, attackers, rules } of messages) {
    const names = attackers.map(({ kind, key }) => `${kind}=${encodeName(key)}`).join(" ");
    const members = rules.map(encodeName).join(" ");
    yield `${toCell(zone)},${at * 60},${incident},${reason},${severity},${subject},${names},${members}\n`;
  }
}

/** Encodes what separates names and cells, as in a URL. Keys are hostile text. */
function encodeName(text: string): string {
  return text.replaceAll(/[\s%,"=]|\p{Cc}/gu, (character) => encodeURIComponent(character.toWellFormed()));
}
