import { setImmediate as yieldToOthers } from "node:timers/promises";
import { MINUTE_MS } from "../lib/units.ts";
import type { Draft } from "./traffic/draft.ts";
import type { Traffic, ZonePlan } from "./traffic/traffic.ts";
import { HORIZON_MS, type ZoneStore } from "./zone-store.ts";

const MINUTES_PER_TURN = 30;

/** Whether the platform has shown this event by `nowMs`: it became visible, and did so before it was forgotten. */
function wasShown(
  traffic: Traffic,
  plan: ZonePlan,
  event: Pick<Draft, "at" | "visibleAt" | "source">,
  nowMs: number,
): boolean {
  const shownAt = Math.max(event.visibleAt, traffic.knownSinceMs(plan, event.source));
  return shownAt <= nowMs && shownAt < event.at + HORIZON_MS;
}

/** What a zone ever showed. Time during which no emulator ran counts: the platform it stands for never stops. */
export function createOracle(traffic: Traffic) {
  const countedBefore = new Map<number, { minute: number; events: number }>();

  /** Every event ever shown, oldest first, a minute at a time, drawn anew from the seed. */
  async function* everShown(
    store: ZoneStore,
    nowMs: number,
    endMinute = Math.floor(nowMs / MINUTE_MS) + 1,
  ): AsyncGenerator<Draft[]> {
    const { plan } = store;
    for (let minute = Math.floor(store.earliestMs() / MINUTE_MS); minute < endMinute; minute++) {
      const shown = traffic.minute(plan, minute).filter((draft) => wasShown(traffic, plan, draft, nowMs));
      if (shown.length > 0) yield shown;
      if (minute % MINUTES_PER_TURN === 0) await yieldToOthers();
    }
  }

  /** Events that the store has dropped already; counted once per position. */
  async function countDropped(store: ZoneStore, nowMs: number): Promise<number> {
    const minute = store.firstMinute();
    const known = countedBefore.get(store.plan.id);
    if (known?.minute === minute) return known.events;
    let events = 0;
    for await (const drafts of everShown(store, nowMs, minute)) events += drafts.length;
    countedBefore.set(store.plan.id, { minute, events });
    return events;
  }

  return {
    everShown,
    /** How many lines `everShown` would give. */
    async count(store: ZoneStore, nowMs: number): Promise<number> {
      let events = await countDropped(store, nowMs);
      const columns = store.columns();
      for (let row = 0; row < columns.length(); row++) {
        const event = {
          at: columns.at(row),
          visibleAt: columns.visibleAt(row),
          source: columns.key(row).source,
        };
        if (wasShown(traffic, store.plan, event, nowMs)) events++;
      }
      return events;
    },
    /** An attack was added: what was counted may no longer hold. */
    forgetCounts: () => countedBefore.clear(),
  };
}
