import { MINUTE_MS } from "#lib/units.ts";
import { type Columns, createColumns } from "./columns.ts";
import { compareDrafts, type Draft, type EventKey } from "./traffic/draft.ts";
import type { Traffic, ZonePlan } from "./traffic/traffic.ts";

/** The platform forgets an event this long after its timestamp. */
export const HORIZON_MS = 72 * 3_600_000;
/** Forgotten minutes are dropped together once there are this many, because dropping means drawing the rest again. */
const DROP_AFTER_MINUTES = 3 * 1_440;

export type ZoneStore = ReturnType<typeof createZoneStore>;

/**
 * Returns the events of one zone that are still served, in (time, logId) order, extended on demand over time. The
 * oracle can draw dropped events again.
 */
export function createZoneStore(plan: ZonePlan, traffic: Traffic) {
  let columns: Columns = createColumns();
  let firstMinute: number | undefined;
  let endMinute = 0;

  /** Returns where the zone's past begins: its history, or an earlier scripted attack. */
  const earliestMs = () =>
    Math.min(
      plan.firstEventMs,
      ...traffic.attacks().flatMap((attack) => (attack.zone === plan.id ? [attack.startMs] : [])),
    );

  return {
    plan,
    columns: () => columns,
    earliestMs,
    firstMinute: () => firstMinute ?? 0,

    /** Draws the events up to `nowMs`. A clock that was set back draws everything again. */
    extendTo(nowMs: number): void {
      const wanted = Math.floor(Math.max(earliestMs(), nowMs - HORIZON_MS) / MINUTE_MS);
      if (firstMinute === undefined || wanted < firstMinute || wanted > firstMinute + DROP_AFTER_MINUTES) {
        columns = createColumns();
        firstMinute = wanted;
        endMinute = wanted;
      }
      for (const lastMinute = Math.floor(nowMs / MINUTE_MS); endMinute <= lastMinute; endMinute++) {
        for (const draft of traffic.minute(plan, endMinute)) columns.push(draft);
      }
    },

    /** Marks the events from this time on as changed. The next extension draws them again. */
    redrawFrom(timeMs: number): void {
      const minute = Math.max(firstMinute ?? 0, Math.floor(timeMs / MINUTE_MS));
      if (minute >= endMinute) return;
      columns.truncate(columns.lowerBound(minute * MINUTE_MS));
      endMinute = minute;
    },

    draft: (row: number): Draft => traffic.redraw(plan.id, columns.at(row), columns.key(row)),
    redraw: (at: number, key: EventKey): Draft => traffic.redraw(plan.id, at, key),

    /** Returns the first row after a position, even if the store does not hold the position's own event. */
    rowAfter(position: Pick<Draft, "at" | "id">): number {
      let row = columns.lowerBound(position.at);
      while (row < columns.length() && columns.at(row) === position.at) {
        const draft = traffic.redraw(plan.id, columns.at(row), columns.key(row));
        if (compareDrafts(draft, position) > 0) return row;
        row++;
      }
      return row;
    },
  };
}
