import { setImmediate as yieldToOthers } from "node:timers/promises";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { createRandom, hashText } from "./traffic/random.ts";
import { type Action, RULES } from "./traffic/rules.ts";
import type { Traffic } from "./traffic/traffic.ts";
import type { ZoneStore } from "./zone-store.ts";

export type ActionCounts = Record<Action, number>;

const WEIGHT_SUM = RULES.reduce((sum, rule) => sum + rule.weight, 0);
const NONE: Readonly<ActionCounts> = { block: 0, log: 0, challenge: 0 };

function countStored(store: ZoneStore, ruleId: string, dayMs: number, nowMs: number): ActionCounts {
  const columns = store.columns();
  const rules = columns.codesOf("ruleId");
  const wanted = columns.dictionaryOf("ruleId").find(ruleId);
  const counts = new Map<string, number>();
  for (let row = columns.lowerBound(dayMs); row < columns.lowerBound(dayMs + DAY_MS); row++) {
    if (rules[row] !== wanted || columns.visibleAt(row) > nowMs) continue;
    const action = columns.dictionaryOf("action").textOf(columns.codesOf("action")[row] ?? 0);
    counts.set(action, (counts.get(action) ?? 0) + 1);
  }
  return {
    block: counts.get("block") ?? 0,
    log: counts.get("log") ?? 0,
    challenge: counts.get("challenge") ?? 0,
  };
}

async function countDrawn(
  traffic: Traffic,
  store: ZoneStore,
  dayMs: number,
  nowMs: number,
): Promise<Map<string, ActionCounts>> {
  const counts = new Map<string, ActionCounts>();
  for (let minute = dayMs / MINUTE_MS; minute < (dayMs + DAY_MS) / MINUTE_MS; minute++) {
    for (const { rule, action, visibleAt } of traffic.minute(store.plan, minute)) {
      if (visibleAt > nowMs) continue;
      const ofRule = counts.get(rule.ruleId) ?? { ...NONE };
      ofRule[action]++;
      counts.set(rule.ruleId, ofRule);
    }
    if (minute % 60 === 0) await yieldToOthers();
  }
  return counts;
}

/** Estimates the platform's count before this emulator's history begins: about the rule's rate, the same every time. */
function estimate(seed: string, store: ZoneStore, ruleId: string, dayMs: number): ActionCounts {
  const rule = RULES.find((known) => known.ruleId === ruleId);
  if (rule === undefined) return { ...NONE };
  const perSecond = store.plan.rates[0]?.eventsPerSecond ?? 0;
  const random = createRandom();
  random.reseed(hashText(`${seed}/${ruleId}`), store.plan.id, dayMs / DAY_MS, 0x646179);
  const usual = rule.weight === 0 ? rule.perDay : (perSecond * 86_400 * rule.weight) / WEIGHT_SUM;
  const total = Math.round(usual * (0.85 + 0.3 * random.fraction()));
  const block = Math.round(total * rule.blockShare);
  const log = Math.min(total - block, Math.round(total * rule.logShare));
  return { block, log, challenge: total - block - log };
}

export type RuleDays = ReturnType<typeof createRuleDays>;

/** How long the platform shows an event; platform API spec 2.3. */
const SHOWN_MS = 3 * DAY_MS;

/**
 * Counts triggers per rule and UTC day: exactly since the history begins, estimated before. With a history shorter
 * than the 72 hours that the platform shows, the rest of these hours counts as empty.
 */
export function createRuleDays(seed: string, traffic: Traffic, historyMs = SHOWN_MS) {
  const drawn = new Map<string, Map<string, ActionCounts>>();

  /** Counts a day that the store no longer holds. The count is cached until an attack is added. */
  async function countPast(
    store: ZoneStore,
    ruleId: string,
    dayMs: number,
    nowMs: number,
  ): Promise<ActionCounts> {
    const key = `${store.plan.id}/${dayMs}/${traffic.attacks().length}`;
    const counts = drawn.get(key) ?? (await countDrawn(traffic, store, dayMs, nowMs));
    drawn.set(key, counts);
    return counts.get(ruleId) ?? { ...NONE };
  }

  async function countDay(
    store: ZoneStore,
    ruleId: string,
    dayMs: number,
    nowMs: number,
  ): Promise<ActionCounts> {
    if (dayMs >= store.firstMinute() * MINUTE_MS) return countStored(store, ruleId, dayMs, nowMs);
    const unshownMs = Math.max(0, SHOWN_MS - historyMs);
    if (dayMs + DAY_MS <= store.earliestMs() - unshownMs) return estimate(seed, store, ruleId, dayMs);
    if (dayMs + DAY_MS <= store.earliestMs()) return { ...NONE };
    // The store's first day may be incomplete. The missing part is either before the history or drawn again.
    return store.firstMinute() * MINUTE_MS <= store.earliestMs()
      ? countStored(store, ruleId, dayMs, nowMs)
      : countPast(store, ruleId, dayMs, nowMs);
  }

  return {
    /** Returns the counts of the last `days` UTC days up to now, oldest first. */
    async count(
      store: ZoneStore,
      query: { ruleId: string; days: number; nowMs: number },
    ): Promise<{ dayMs: number; counts: ActionCounts }[]> {
      const todayMs = Math.floor(query.nowMs / DAY_MS) * DAY_MS;
      const days: { dayMs: number; counts: ActionCounts }[] = [];
      for (let dayMs = todayMs - (query.days - 1) * DAY_MS; dayMs <= todayMs; dayMs += DAY_MS) {
        days.push({ dayMs, counts: await countDay(store, query.ruleId, dayMs, query.nowMs) });
      }
      return days;
    },
  };
}
