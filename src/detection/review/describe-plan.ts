/** A plan as text for the command line. */
import { formatWhole } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import type { Cell, DrawTable } from "#operations/operation.ts";
import type { ReviewPlanOutput } from "./plan-zone.ts";

type Rule = ReviewPlanOutput["rules"][number];

const PLANS = { log: "log", undecided: "undecided", unplanned: "not planned" } as const;
const MOST_WHY = 8;

/** Returns the sentences, a line for each rule, and why rules do not simply block. Fits into 80 columns. */
export function describePlan(
  { summary, learned, judged, rules }: ReviewPlanOutput,
  table: DrawTable,
): string {
  const rows = rules.map((rule): Cell[] => [
    toLine(rule.rule, 12),
    rule.now,
    ...[rule.hostile, rule.visitor, rule.unknown].map(formatWhole),
    `${formatWhole(rule.visitorsMedian)}/${formatWhole(rule.visitorsWorst)}`,
    formatWhole(rule.attacksThrough),
    planOf(rule),
  ]);
  const heads = ["RULE", "NOW", "HOSTILE", "VISITORS", "UNKNOWN", "HIT/DAY", "THROUGH", "PLAN"];
  const notes = rules.flatMap(({ rule, exclusions, why }) => [
    ...exclusions.map(
      (path) => `${toLine(rule, 12)} must not block on ${toLine(path, 60)}: see \`exclusion try\``,
    ),
    ...(why === "" || exclusions.length > 0 ? [] : [`${toLine(rule, 12)}: ${toLine(why, 160)}`]),
  ]);
  const more =
    notes.length > MOST_WHY ? [`... and ${notes.length - MOST_WHY} more: --json has all of them`] : [];
  return [
    ...wrap(toLine(summary, 2_000)),
    "",
    ...wrap(
      `Planned from ${learned.from} to ${learned.to} (${learned.days} days with requests); the figures are of ${judged.from} to ${judged.to}. block*: after an exclusion. HIT/DAY: requests of visitors and unknown senders that only this rule would stop, on the median and the worst day. THROUGH: hostile requests that get through if it logs.`,
    ),
    "",
    rules.length === 0 ? "" : table(heads, rows).trimEnd(),
    ...(notes.length === 0 ? [] : ["", ...notes.slice(0, MOST_WHY).flatMap((note) => wrap(note)), ...more]),
    "",
  ].join("\n");
}

function planOf({ plan, isBlocking, exclusions }: Rule): Cell {
  if (isBlocking) return { text: exclusions.length === 0 ? "block" : "block*", style: "green" };
  return plan === "block" || plan === "block-after-exclusion" ? "log (chosen)" : PLANS[plan];
}

const WIDTH = 79;

function wrap(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
