import { type ActionEvent, createActionRun, type FoundFlip, type UsualActions } from "./action-run.ts";

const HISTORY_HOURS = 168;

/** The counts of one rule in an hour since the epoch. */
export interface ActionHour extends UsualActions {
  readonly hour: number;
}

interface WatchedRule {
  readonly hours: ActionHour[];
  /** True if the hours were restored, so that an event is in them already. */
  readonly isStored: boolean;
  readonly run: ReturnType<typeof createActionRun>;
  /** Minutes of the latest change: its first event, and the one that proved it or its report. */
  since: number;
  foundAt: number;
}

const NEVER = { since: Number.NEGATIVE_INFINITY, foundAt: Number.NEGATIVE_INFINITY };

/**
 * Watches the actions of one zone's rules, event by event. Takes the events of a rule in the order of time. A rule keeps
 * its last 168 hours with events: about four kilobytes.
 */
export function createActionWatch() {
  const rules = new Map<string, WatchedRule>();
  const add = (ruleId: string, restored: Partial<WatchedRule>) => {
    const rule = { hours: [], isStored: false, run: createActionRun(), ...NEVER, ...restored };
    rules.set(ruleId, rule);
    return rule;
  };

  /** Continues a rule from its stored hours and the latest change that was reported. */
  function restore(ruleId: string, hours: ActionHour[], before: typeof NEVER = NEVER): void {
    add(ruleId, { hours, isStored: true, ...before });
  }

  /** Returns the flip that this event proves. */
  function take(ruleId: string, action: ActionEvent["action"], address: string, minute: number) {
    if (action === "other") return null;
    const rule = rules.get(ruleId) ?? add(ruleId, {});
    const flip = minute <= rule.foundAt ? null : judge(rule, { minute, action, address });
    if (!rule.isStored) count(rule.hours, Math.floor(minute / 60), action !== "logged");
    return flip === null ? null : { ruleId, ...flip };
  }

  return { restore, take };
}

function judge(rule: WatchedRule, event: ActionEvent): FoundFlip | null {
  const flip = rule.run.take(event, () => sumUsual(rule, event.minute));
  if (flip !== null) Object.assign(rule, { since: flip.since, foundAt: flip.minute });
  return flip;
}

/** Adds up the hours of a week that ended an hour ago or earlier, without those before the latest change. */
function sumUsual({ hours, since }: WatchedRule, minute: number): UsualActions {
  const nowHour = Math.floor(minute / 60);
  const fromHour = Math.max(nowHour - HISTORY_HOURS, Math.floor(since / 60) + 1);
  const counted = hours.filter(({ hour }) => hour >= fromHour && hour <= nowHour - 2);
  const sum = (read: (hour: ActionHour) => number) => counted.reduce((all, one) => all + read(one), 0);
  return { stopped: sum((one) => one.stopped), events: sum((one) => one.events) };
}

function count(hours: ActionHour[], hour: number, isStopped: boolean): void {
  const last = hours.at(-1)?.hour === hour ? hours.pop() : undefined;
  const { stopped, events } = last ?? { stopped: 0, events: 0 };
  hours.push({ hour, stopped: stopped + Number(isStopped), events: events + 1 });
  while ((hours[0]?.hour ?? hour) < hour - HISTORY_HOURS) hours.shift();
}
