import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type {
  RuleFacts as RuleFactsSchema,
  RuleReplay as RuleReplaySchema,
  RuleSeries as RuleSeriesSchema,
} from "#faces/http/routes/v1/rule-series.ts";
import type { Rule as RuleSchema } from "#faces/http/routes/v1/rules.ts";
import type { WidthName } from "#model/kinds.ts";
import { call } from "./client.ts";
import type { Page } from "./page.ts";

export type Rule = z.infer<typeof RuleSchema>;
export type RuleSeries = z.infer<typeof RuleSeriesSchema>;
export type RuleReplay = z.infer<typeof RuleReplaySchema>;
export type RuleFacts = z.infer<typeof RuleFactsSchema>;

export interface RuleKey {
  readonly zone: number;
  readonly rule: string;
}

/** The rules of a span, the one with most events first. */
export function useRules(query: {
  readonly zone: number | null;
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  readonly points: number;
}) {
  return useQuery({
    queryKey: ["rules", query],
    queryFn: ({ signal }) => call<Page<Rule>>("/api/v1/rules", { query, signal }),
    placeholderData: keepPreviousData,
  });
}

/** A rule's counts with the detector's expectation and threshold. */
export function useRuleSeries(query: {
  readonly zone: number | null;
  readonly rule: string | null;
  readonly width: WidthName;
  readonly from: number;
  readonly to: number;
}) {
  return useQuery({
    queryKey: ["rule-series", query],
    queryFn: ({ signal }) => call<RuleSeries>("/api/v1/rules/series", { query, signal }),
    enabled: query.zone !== null && query.rule !== null,
    placeholderData: keepPreviousData,
  });
}

/** The alerts that other settings would have raised over the last days. Null asks for the settings in force. */
export function useRuleReplay(
  key: RuleKey,
  settings: { readonly z: number | null; readonly floor: number | null; readonly days: number },
) {
  const query = { ...key, ...settings };
  return useQuery({
    queryKey: ["rule-replay", query],
    queryFn: ({ signal }) => call<RuleReplay>("/api/v1/rules/replay", { query, signal }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

/** The recommendations for a rule, and the platform's own daily counts. */
export function useRuleFacts(key: RuleKey) {
  return useQuery({
    queryKey: ["rule-facts", key],
    queryFn: ({ signal }) => call<RuleFacts>("/api/v1/rules/facts", { query: { ...key }, signal }),
    staleTime: 60_000,
  });
}
