/** Facts of rules: their families, their changes and how long they are learnt. */

import { DAY_MS, MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { CHANGE_KINDS, type ChangeKind, RULE_SPIKE_KINDS, type RuleSpikeKind } from "./kinds.ts";

/** A regular expression for `isSumRule`, which Postgres reads as JavaScript does. */
export const SUM_RULES = "^(?:901340|949[0-9]{3}|959[0-9]{3}|980[0-9]{3})$";
const SUM_RULE = new RegExp(SUM_RULES);

/** Rules of the core rule set that only compare a sum of other rules' scores with a limit, or report that sum. */
export function isSumRule(ruleId: string): boolean {
  return SUM_RULE.test(ruleId);
}

/** Rules of the core rule set, which read the texts of a request or of its answer. Others may count requests, or look at who sends them. */
export function isCoreRule(ruleId: string): boolean {
  return /^9\d{5}$/.test(ruleId);
}

/** Rules of the core rule set whose matches, if they work, run or load code, or read what is stored: uploads, lookups, queries. */
export function isInjectionRule(ruleId: string): boolean {
  return /^9(?:22|3[1-4]|42|44)\d{3}$/.test(ruleId);
}

/** Rules of the core rule set that read how a client builds its requests (methods, headers, encodings), and no text that is sent. */
export function isProtocolRule(ruleId: string): boolean {
  return /^(?:200|911|920)\d{3}$/.test(ruleId);
}

/** Rules of the core rule set that read the site's answer: data leaks, error texts and web shells (950 to 956). */
export function isResponseRule(ruleId: string): boolean {
  return /^95[0-6]\d{3}$/.test(ruleId);
}

/** A change of a rule's action: counted events on the side that was rare before. */
export interface ActionFlip {
  /** True if the rule blocks or challenges since the change, false if it logs. */
  readonly blocks: boolean;
  /** True if some of the events were challenged and not blocked. */
  readonly challenges: boolean;
  /** The events on the new side, of all events of the rule since the change, and their different addresses. */
  readonly events: number;
  readonly of: number;
  readonly addresses: number;
  /** Before the change, the events on the other side, of all. */
  readonly usualEvents: number;
  readonly before: number;
}

/** One rule of a spike that is about changes. The rule's id is the log's text. */
export interface RuleChange {
  readonly ruleId: string;
  /** The first event of the new action, or the last one before the silence; minutes since the epoch. */
  readonly since: number;
  /** When the change was stored, and when it was over: the rule changed back, or has events again. Epoch ms. */
  readonly foundAt: number;
  readonly endedAt: number | null;
  /** Change of the kind `action-change`. */
  readonly flip?: ActionFlip | undefined;
  /** Events that were expected since, for the kind `silent-rule`. */
  readonly expected?: number | undefined;
}

/**
 * How long a spike of changes stays open. A change of action does not end: a day shows it to every shift, and the next change
 * then opens an alert again. A silent rule's week says nothing of it after a week.
 */
export const OPEN_DAYS: Readonly<Record<ChangeKind, number>> = { "action-change": 1, "silent-rule": 7 };

/** Returns the changes that last. If none does, all. */
export function lastingChanges(changes: readonly RuleChange[]): readonly RuleChange[] {
  const lasting = changes.filter(({ endedAt }) => endedAt === null);
  return lasting.length === 0 ? changes : lasting;
}

/** Returns the rule id of the spikes of this kind, which no rule has. */
export function changesRule(kind: ChangeKind): string {
  return `(${kind})`;
}

export function isChangeKind(kind: string): kind is ChangeKind {
  return CHANGE_KINDS.some((one) => one === kind);
}

/** Returns whether an alert of this kind is about one rule, which it names by its id. */
export function isRuleKind(kind: string): kind is RuleSpikeKind {
  return RULE_SPIKE_KINDS.some((one) => one === kind);
}

/** Older events than this are no history, so a zone that was silent for so long begins anew. */
const HISTORY_HOURS = 170;

/** Returns the first minute (since the epoch) whose events are the history of a zone. */
export function startOfHistory(nowMs: number): number {
  return Math.floor(nowMs / (60 * MINUTE_MS)) * 60 - HISTORY_HOURS * 60;
}

/** Returns the minute in which a zone's first day ends; null before its first event. Minutes are numbered since the epoch. */
export function learningUntil(firstMinute: number | null): number | null {
  return firstMinute === null ? null : firstMinute + MINUTES_PER_DAY;
}

/** Returns whether a minute is in a zone's first day. There is nothing to compare with then. */
export function isLearning(firstMinute: number | null, minute: number): boolean {
  const until = learningUntil(firstMinute);
  return until === null || minute < until;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Says until when a zone is in its first day, and the effect. `untilMs` is at most a day ahead, so the weekday names the day. */
export function describeLearning(untilMs: number): string {
  const day = DAYS[(Math.floor(untilMs / DAY_MS) + 4) % 7];
  const time = new Date(untilMs).toISOString().slice(11, 16);
  return `learning until ${day} ${time} UTC: only attacks over the fixed lines notify`;
}
