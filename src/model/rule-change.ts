import { CHANGE_KINDS, type ChangeKind, RULE_SPIKE_KINDS, type RuleSpikeKind } from "./kinds.ts";

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
