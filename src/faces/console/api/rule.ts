import { type Input, type Item, type Output, useOperation } from "./ask.ts";

export type Rule = Item<"rules.list">;
export type RuleSeries = Output<"rules.series">;
export type RuleFacts = Output<"rules.facts">;

export interface RuleKey {
  readonly zone: number;
  readonly rule: string;
}

/** A rule's counts with the detector's expectation and threshold. */
export const useRuleSeries = (query: Input<"rules.series">) =>
  useOperation("rules.series", query, { enabled: query.zone !== null && query.rule !== null });
