import type { ExclusionProposal } from "#model/advice.ts";
import type { EventsReport } from "./replay-events.ts";
import { toCell, writeLines } from "./write-lines.ts";

/** Writes one row per message that would have been sent; `at` is the epoch second of its minute's end. */
export function writeMessages(path: string, { messages }: EventsReport): Promise<void> {
  return writeLines(path, lines(messages));
}

function* lines(messages: EventsReport["messages"]): Generator<string> {
  yield "zone,at,incident,reason,severity,subject,attackers,rules,verdict,odds,exclusion\n";
  for (const { zone, at, incident, reason, severity, subject, attackers, rules, verdict } of messages) {
    const names = attackers.map(({ kind, key }) => `${kind}=${encodeName(key)}`).join(" ");
    const members = rules.map(encodeName).join(" ");
    const said = verdict === undefined ? "," : `${verdict.said},${verdict.odds.toFixed(3)}`;
    const exclusion = toExclusion(verdict?.exclusion ?? null);
    yield `${toCell(zone)},${at * 60},${incident},${reason},${severity},${subject},${names},${members},${said},${exclusion}\n`;
  }
}

/** Returns the clauses of a proposal as `rule path method parameter`, one after the other; `*` stands for any. */
function toExclusion(proposal: ExclusionProposal | null): string {
  if (proposal?.form !== "narrow") return "";
  return proposal.clauses
    .map(({ ruleIds, template, method, parameter }) =>
      [ruleIds.join("+"), template, method, parameter]
        .map((part) => encodeName(part ?? "*").replaceAll(";", "%3B"))
        .join(" "),
    )
    .join(";");
}

/** Encodes what separates names and cells, as in a URL. Keys are hostile text. */
function encodeName(text: string): string {
  return text.replaceAll(/[\s%,"=]|\p{Cc}/gu, (character) => encodeURIComponent(character.toWellFormed()));
}
