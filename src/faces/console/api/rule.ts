import { type Input, type Item, type Output, useOperation } from "./ask.ts";

export type Rule = Item<"rules.list">;
export type RuleSeries = Output<"rules.series">;
export type RuleReplay = Output<"rules.replay">;
export type RuleFacts = Output<"rules.facts">;

export interface RuleKey {
  readonly zone: number;
  readonly rule: string;
}

/** The rules of a span, the one with most events first. */
export const useRules = (query: Input<"rules.list">) => useOperation("rules.list", query);

/** A rule's counts with the detector's expectation and threshold. */
export const useRuleSeries = (query: Input<"rules.series">) =>
  useOperation("rules.series", query, { enabled: query.zone !== null && query.rule !== null });

/** The alerts that other settings would have raised over the last days. Null asks for the settings in force. */
export const useRuleReplay = (
  key: RuleKey,
  settings: { readonly z: number | null; readonly floor: number | null; readonly days: number },
) => useOperation("rules.replay", { ...key, ...settings }, { staleTime: 60_000 });

/** The recommendations for a rule, and the platform's own daily counts. */
export const useRuleFacts = (key: RuleKey) => useOperation("rules.facts", { ...key }, { staleTime: 60_000 });
