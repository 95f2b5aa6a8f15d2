import { setImmediate as yieldToOthers } from "node:timers/promises";
import { MINUTE_MS } from "#lib/units.ts";
import type { Draft } from "./traffic/draft.ts";
import type { Traffic, ZonePlan } from "./traffic/traffic.ts";
import { HORIZON_MS, type ZoneStore } from "./zone-store.ts";

const MINUTES_PER_TURN = 30;
/** Events and minutes that are kept between two readings: all of a small zone, and little memory of a large one. */
const MAX_KEPT = 20_000;

/** Returns whether the platform has shown this event by `nowMs`: it became visible before the platform forgot it. */
function wasShown(
  traffic: Traffic,
  plan: ZonePlan,
  event: Pick<Draft, "at" | "visibleAt" | "source">,
  nowMs: number,
): boolean {
  const shownAt = Math.max(event.visibleAt, traffic.knownSinceMs(plan, event.source));
  return shownAt <= nowMs && shownAt < event.at + HORIZON_MS;
}

/**
 * Returns the oracle of everything that a zone ever showed. Time without a running emulator counts, because the real
 * platform never stops.
 */
export function createOracle(traffic: Traffic) {
  const countedBefore = new Map<number, { minute: number; events: number }>();

  const kept = new Map<ZonePlan, Map<number, Draft[]>>();
  let keptSize = 0;

  function drawMinute(plan: ZonePlan, minute: number): Draft[] {
    const minutes = kept.get(plan) ?? new Map<number, Draft[]>();
    const known = minutes.get(minute);
    if (known !== undefined) return known;
    const drawn = traffic.minute(plan, minute);
    if (keptSize + drawn.length + 1 > MAX_KEPT) return drawn;
    keptSize += drawn.length + 1;
    kept.set(plan, minutes.set(minute, drawn));
    return drawn;
  }

  /** Yields every event ever shown, oldest first, a minute at a time, drawn again from the seed. */
  async function* everShown(
    store: ZoneStore,
    nowMs: number,
    endMinute = Math.floor(nowMs / MINUTE_MS) + 1,
  ): AsyncGenerator<Draft[]> {
    const { plan } = store;
    for (let minute = Math.floor(store.earliestMs() / MINUTE_MS); minute < endMinute; minute++) {
      const shown = drawMinute(plan, minute).filter((draft) => wasShown(traffic, plan, draft, nowMs));
      if (shown.length > 0) yield shown;
      if (minute % MINUTES_PER_TURN === 0) await yieldToOthers();
    }
  }

  /** Counts the events that the store has already dropped, once per position. */
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
    /** Returns the number of events that `everShown` would yield. */
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
    /** Call after an attack was added, because earlier counts and minutes may be wrong then. */
    forget(): void {
      countedBefore.clear();
      kept.clear();
      keptSize = 0;
    },
  };
}
