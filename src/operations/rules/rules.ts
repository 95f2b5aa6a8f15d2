import { showRuleFacts } from "./rule-facts.ts";
import { listRules } from "./rule-list.ts";
import { replayRule } from "./rule-replay.ts";
import { showRuleSeries } from "./rule-series.ts";

export const ruleOperations = [listRules, showRuleSeries, replayRule, showRuleFacts];
