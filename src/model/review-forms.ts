/** Writes a choice of blocking rules in forms that a person can apply. Longwatch applies none. */
import { quoteFormula, toHcl, toJson, toLine, toShell } from "#lib/text.ts";
import type { ReviewForm, ReviewPlan, RuleMode } from "./kinds.ts";
import type { ReviewChoice } from "./review.ts";

/** A rule of a plan, as far as its forms name it. */
interface WrittenRule {
  readonly rule: string;
  readonly now: RuleMode;
  readonly plan: ReviewPlan;
  readonly visitorsMedian: number;
  readonly visitorsWorst: number;
  readonly attacksThrough: number;
}

interface WrittenChoice extends ReviewChoice {
  readonly zone: number;
  /** The rules that can be planned, in the order of the plan. */
  readonly rules: readonly WrittenRule[];
}

/** The platform's words for what a rule does. */
const ENABLED = 0;
const LOGGED = 1;

/**
 * Returns the choice as a text. The platform's lists name the rules that only log, and it fails on parallel calls, so the calls come one after the
 * other. It has no exclusion of a rule on a path: what is to be excluded first is a comment.
 */
export function writeReview(form: ReviewForm, choice: WrittenChoice): string {
  switch (form) {
    case "terraform":
      return toTerraform(choice);
    case "curl":
      return toCalls(choice);
    case "csv":
      return toCsv(choice);
    case "json": {
      const { zone, block, exclusions, rules } = choice;
      return `${JSON.stringify({ zone, block, exclusions, rules }, null, 2)}\n`;
    }
    default:
      return form satisfies never;
  }
}

function toTerraform({ zone, rules, block, exclusions }: WrittenChoice): string {
  const logged = rules.filter(({ rule }) => !block.includes(rule)).map(({ rule }) => rule);
  return `# Rules that only log; every other rule blocks. Put the list into the resource of your pull zone, which also needs its pullzone.
# Keep your own rules_disabled: this plan disables none.
${toRemarks(zone, exclusions)}resource "bunnynet_pullzone_shield" "zone_${zone}" {
  waf {
    enabled        = true
    rules_logonly  = [${logged.map(toHcl).join(", ")}]
    rules_disabled = []
  }
}
`;
}

function toCalls({ zone, rules, block, exclusions }: WrittenChoice): string {
  const calls = rules.flatMap(({ rule, now }) => {
    const action = block.includes(rule) ? ENABLED : LOGGED;
    if (now === (action === ENABLED ? "blocks" : "logs")) return [];
    return `curl --fail-with-body -X POST "$EDGE_API_URL/shield/waf/rules/review-triggered/${zone}" -H "AccessKey: $EDGE_API_KEY" -H 'Content-Type: application/json' --data ${toShell(toJson({ ruleId: rule, action }))}\nsleep 1`;
  });
  return `#!/bin/sh
# One call at a time, with a key that may write. Stops at the first call that fails. Action 1 logs. Action 0 is called Ignore in the platform's
# API document and enables the rule in its own plugin: check the first such rule in the dashboard.
set -e
${toRemarks(zone, exclusions)}${calls.length === 0 ? "# Every rule already does what the plan says." : calls.join("\n")}
`;
}

function toRemarks(zone: number, exclusions: ReviewChoice["exclusions"]): string {
  return Array.from(
    Map.groupBy(exclusions, ({ path }) => path),
    ([path, of]) => {
      const rules = of.map(({ rule }) => toLine(rule, 100));
      const named = rules.length === 1 ? `rule ${rules[0]}` : `rules ${rules.join(", ")}`;
      return `# First exclude ${named} on ${toLine(path, 300)}: longwatch exclusion try --zone ${zone} --rule ${toShell(rules[0] ?? "")} --path ${toShell(toLine(path, 300))}\n`;
    },
  ).join("");
}

function toCsv({ rules, block, exclusions }: WrittenChoice): string {
  const head = [
    "rule",
    "now",
    "to",
    "excluded_on",
    "plan",
    "visitors_median_day",
    "visitors_worst_day",
    "attacks_through",
  ];
  const rows = rules.map((one) => [
    one.rule,
    one.now,
    block.includes(one.rule) ? "block" : "log",
    exclusions.flatMap(({ rule, path }) => (rule === one.rule ? [path] : [])).join(" "),
    one.plan,
    ...[one.visitorsMedian, one.visitorsWorst, one.attacksThrough].map(String),
  ]);
  return [head, ...rows].map((cells) => `${cells.map(toCell).join(",")}\r\n`).join("");
}

function toCell(text: string): string {
  return `"${quoteFormula(text).replaceAll('"', '""')}"`;
}
