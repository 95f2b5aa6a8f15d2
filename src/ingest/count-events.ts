import type { WafEvent } from "./waf-event.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

interface DirtyMinute {
  readonly ruleId: string;
  /** Epoch ms. */
  readonly minute: number;
}

/** The minutes of each rule that these events make stale. An event whose rule is not known counts under ''. */
function touchedMinutes(events: readonly Pick<WafEvent, "ruleId" | "occurredAt">[]): DirtyMinute[] {
  const touched = new Map<string, DirtyMinute>();
  for (const { ruleId, occurredAt } of events) {
    const minute = occurredAt - (occurredAt % MINUTE_MS);
    const key = `${minute} ${ruleId ?? ""}`;
    if (!touched.has(key)) touched.set(key, { ruleId: ruleId ?? "", minute });
  }
  return [...touched.values()];
}

/** How many events each hour (epoch ms of its start) has. */
function countByHour(events: readonly Pick<WafEvent, "occurredAt">[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { occurredAt } of events) {
    const hour = occurredAt - (occurredAt % HOUR_MS);
    counts.set(hour, (counts.get(hour) ?? 0) + 1);
  }
  return counts;
}

/** What a page of new events makes stale and adds. */
export function countEvents(events: readonly Pick<WafEvent, "ruleId" | "occurredAt">[]) {
  return { minutes: touchedMinutes(events), hours: countByHour(events) };
}
