import type { Search } from "#archive/rules/query/plan-search.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { SEARCH_NOW } from "./data-set.ts";
import { RARE_TEXT } from "./day-events.ts";

/** Which promise a question belongs to. */
export type QuestionKind = "scan" | "page";

export interface Question {
  readonly name: string;
  readonly kind: QuestionKind;
  readonly search: Search;
}

/** What people ask an archive; `ip` is an address with some traffic. */
export function listQuestions(ip: string): Question[] {
  return [
    ask("last hour, newest 50", "scan", { from: SEARCH_NOW - HOUR_MS }),
    ask("30 days by rule, 500 buckets", "scan", { ...days(30), groupBy: ["ruleId"], buckets: 500 }),
    ask("90 days by country", "scan", { ...days(90), groupBy: ["country"] }),
    ask("7 days by address", "scan", { ...days(7), groupBy: ["ip"] }),
    ask("one address over 90 days", "scan", {
      ...days(90),
      filters: [{ field: "ip", op: "eq", value: [ip] }],
    }),
    ask("rare text over 30 days", "scan", { ...days(30), query: RARE_TEXT }),
    ask("common text over 30 days", "scan", { ...days(30), query: "passwd" }),
    ask("a network over 30 days by address", "scan", {
      ...days(30),
      filters: [{ field: "ip", op: "cidr", value: ["5.12.0.0/16"] }],
      groupBy: ["ip"],
    }),
    ask("wildcard on the URL, 7 days by rule", "scan", {
      ...days(7),
      filters: [{ field: "url", op: "wildcard", value: ["*/login?*union*"] }],
      groupBy: ["ruleId"],
    }),
    ask("newest 50 of 90 days", "page", days(90)),
    ask("page 10,000 of 90 days", "page", { ...days(90), page: 10_000 }),
  ];
}

function days(count: number): { from: number } {
  return { from: SEARCH_NOW - count * DAY_MS };
}

function ask(name: string, kind: QuestionKind, asked: Partial<Search> & { from: number }): Question {
  const rest = { to: SEARCH_NOW, query: "", filters: [], groupBy: [], buckets: 0, page: 0, pageSize: 50 };
  return { name, kind, search: { ...rest, ...asked } };
}
