/** Watches the actions of rules, and merges their changes. */

import { MINUTE_MS } from "#lib/units.ts";
import type { ActionClass } from "#model/kinds.ts";
import type { ActionFlip, RuleChange } from "#model/rules.ts";

/** An event as the actions of its rule are judged. */
interface ActionEvent {
  /** Since the epoch. */
  readonly minute: number;
  readonly action: ActionClass;
  /** The sender as `toSourceAddress` names it; empty if it is not known. */
  readonly address: string;
}

/** The events of a rule that were blocked or challenged, and all that were blocked, challenged or logged. */
interface UsualActions {
  readonly stopped: number;
  readonly events: number;
}

/** A flip with the minute of its first event, and of the event that proved it. */
interface FoundFlip extends ActionFlip {
  readonly since: number;
  readonly minute: number;
}

/** Fewer events than these do not show what is usual. */
const LEAST_USUAL = 20;
/** A longer history counts as so many events, so that four surprises are enough and three are not. */
const MOST_USUAL = 50;
/** A rule whose rarer action has at least this share is mixed: one sender would change its shares. */
const RARE = 0.05;
/** The share of the other action after a change. */
const CHANGED = 0.9;
/** Natural logarithm of the proof that suffices: four events in a row. */
const PROOF = 15;
/** One client that a rule of its own blocks is no change. So no sender adds more surprises than these. */
const LEAST_ADDRESSES = 2;
const MOST_PER_ADDRESS = 2;
const MOST_ADDRESSES = 1_000;
/** Events that are older are part of the usual ones. */
const LONGEST_MINUTES = 7 * 24 * 60;

interface Side {
  /** Weight of a surprise, and of an event as usual; fixed by what was usual when the run began. */
  rise: number;
  fall: number;
  score: number;
  since: number;
  events: number;
  challenged: number;
  of: number;
  usual: UsualActions;
  /** The surprises of each sender; of the ones whose address is not known under ''. */
  readonly senders: Map<string, number>;
}

/**
 * Counts the events of one rule on the side that is rare for it, as a cumulative sum of log-likelihood ratios: it rises
 * with each event of the rare side, falls with each other one, and is never negative. Counted events are judged and no
 * minutes, because most rules have few. A run of surprises is compared with what was usual when it began, so that a slow
 * change does not become usual before it is found. `challenged` is on the side of `blocked`: either stops a visitor.
 * Other actions are left out.
 */
function createActionRun() {
  const sides = [createSide(), createSide()] as const;

  /** Takes the next event in the order of time. Returns the flip that it proves; the run then begins anew. */
  function take({ minute, action, address }: ActionEvent, usualNow: () => UsualActions): FoundFlip | null {
    if (action === "other") return null;
    let flip: FoundFlip | null = null;
    for (const [index, side] of sides.entries()) {
      const isRare = (action === "logged") === (index === 1);
      if (side.score > 0 && minute - side.since >= LONGEST_MINUTES) side.score = 0;
      if (side.score === 0) {
        if (!isRare || !begin(side, usualNow(), index === 0)) continue;
        side.since = minute;
      }
      side.of += 1;
      if (isRare) {
        side.events += 1;
        if (action === "challenged") side.challenged += 1;
        if (isCounted(side.senders, address)) side.score += side.rise;
      } else side.score = Math.max(0, side.score + side.fall);
      if (side.score >= PROOF && countAddresses(side) >= LEAST_ADDRESSES)
        flip = toFlip(side, index === 0, minute);
    }
    if (flip !== null) for (const side of sides) side.score = 0;
    return flip;
  }

  return take;
}

function createSide(): Side {
  const usual = { stopped: 0, events: 0 };
  const counts = { score: 0, since: 0, events: 0, challenged: 0, of: 0 };
  return { rise: 0, fall: 0, ...counts, usual, senders: new Map() };
}

/** Returns whether one more surprise of this sender is evidence. */
function isCounted(senders: Map<string, number>, address: string): boolean {
  const before = senders.get(address) ?? 0;
  if (before > 0 || senders.size < MOST_ADDRESSES) senders.set(address, before + 1);
  return before < MOST_PER_ADDRESS;
}

function countAddresses({ senders }: Side): number {
  return senders.size - Number(senders.has(""));
}

/** Returns false if this side is not rare for the rule, or if too little is known of it. */
function begin(side: Side, usual: UsualActions, isStopped: boolean): boolean {
  const share = shareOf(usual, isStopped);
  if (share >= RARE) return false;
  side.rise = Math.log(CHANGED / share);
  side.fall = Math.log((1 - CHANGED) / (1 - share));
  side.usual = usual;
  side.senders.clear();
  side.events = side.challenged = side.of = 0;
  return true;
}

/** Returns the share to expect of one side, 1 if too little is known. */
function shareOf({ stopped, events }: UsualActions, isStopped: boolean): number {
  if (events < LEAST_USUAL) return 1;
  const scale = Math.min(1, MOST_USUAL / events);
  return ((isStopped ? stopped : events - stopped) * scale + 0.5) / (events * scale + 1);
}

function toFlip(side: Side, blocks: boolean, minute: number): FoundFlip {
  const { since, events, challenged, of, usual } = side;
  const { stopped, events: before } = usual;
  const usualEvents = blocks ? before - stopped : stopped;
  return {
    since,
    minute,
    blocks,
    challenges: challenged > 0,
    events,
    of,
    addresses: countAddresses(side),
    usualEvents,
    before,
  };
}

const HISTORY_HOURS = 168;

/** The counts of one rule in an hour since the epoch. */
interface ActionHour extends UsualActions {
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
    const event = { minute, action, address };
    const flip = minute <= rule.foundAt ? null : rule.run(event, () => sumUsual(rule, minute));
    if (flip !== null) Object.assign(rule, { since: flip.since, foundAt: flip.minute });
    if (!rule.isStored) count(rule.hours, Math.floor(minute / 60), action !== "logged");
    return flip === null ? null : { ruleId, ...flip };
  }

  return { restore, take };
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

/** Changes of one spike. A zone has a few hundred rules; more are reported by the next spike. */
const MOST_CHANGES = 500;

/** A change that was found and not stored yet. */
export type NewChange = Omit<RuleChange, "foundAt" | "endedAt">;

interface ChangesToMerge {
  /** The changes of the open spike. */
  readonly open: readonly RuleChange[];
  /** All changes that were stored lately. */
  readonly known: readonly RuleChange[];
  readonly found: readonly NewChange[];
  readonly ended: ReadonlySet<string>;
  readonly atMs: number;
}

/**
 * Returns the open spike's changes together with the found ones, and whether all have ended; null if nothing changes. A found
 * change is skipped if a change of the same rule was stored after it began. A later change of a rule ends the earlier one.
 */
export function mergeChanges({ open, known, found, ended, atMs }: ChangesToMerge) {
  const isKnown = ({ ruleId, since }: Pick<RuleChange, "ruleId" | "since">) =>
    known.some((one) => one.ruleId === ruleId && one.foundAt >= since * MINUTE_MS);
  const added = found
    .filter((one) => !isKnown(one))
    .sort((one, other) => one.since - other.since || (one.ruleId < other.ruleId ? -1 : 1))
    .slice(0, MOST_CHANGES - open.length);
  const over = new Set([...ended, ...added.map(({ ruleId }) => ruleId)]);
  const isEnding = ({ ruleId, endedAt }: RuleChange) => endedAt === null && over.has(ruleId);
  if (added.length === 0 && !open.some(isEnding)) return null;
  const changes = [
    ...open.map((one) => (isEnding(one) ? { ...one, endedAt: atMs } : one)),
    ...added.map((one) => ({ ...one, foundAt: atMs, endedAt: null })),
  ];
  return { changes, isOver: changes.every(({ endedAt }) => endedAt !== null) };
}
