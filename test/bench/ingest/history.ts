import { gzipSync } from "node:zlib";
import { toListEntry } from "#emulator/traffic/render-event.ts";
import { createTraffic } from "#emulator/traffic/traffic.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";

const DAYS = 3;
const PAGE_SIZE = 1_000;

/** What the platform's clock says during the benchmark: the last half hour of three whole days, so that a replay still is on the same day. */
export const BENCH_NOW = Date.UTC(2026, 10, 20, 23, 30);

/** Zones of the measured run have the numbers from here on, one per session. */
export const FIRST_ZONE = 101;
/** A zone of its own for warming up, so that nothing of the measured run is known before it begins. */
export const WARM_UP_ZONE = 100;

export interface RenderedPage {
  readonly gzip: Buffer;
  readonly entries: number;
  readonly bytes: number;
}

/** A day as the platform names it in a path, `MM-dd-yyyy`. */
export function dayNames(): string[] {
  const first = firstDayStart();
  return Array.from({ length: DAYS }, (_, index) => {
    const [year, month, day] = new Date(first + index * DAY_MS).toISOString().slice(0, 10).split("-");
    return `${month}-${day}-${year}`;
  });
}

function firstDayStart(): number {
  return BENCH_NOW - (BENCH_NOW % DAY_MS) - (DAYS - 1) * DAY_MS;
}

/**
 * About `events` events of one zone over three days, as the pages of the date-paged list, oldest first, gzipped; by
 * path. The same every time: content is a function of seed, zone and time.
 */
export function renderZone(zoneId: number, events: number): Map<string, RenderedPage> {
  const traffic = createTraffic({ seed: "bench", lateness: { share: 0, maxMs: MINUTE_MS } });
  const begin = firstDayStart();
  const plan = {
    id: zoneId,
    firstEventMs: begin,
    createdAtMs: begin,
    rates: [{ sinceMs: 0, eventsPerSecond: events / ((DAYS * DAY_MS) / 1_000) }],
  };
  const pages = new Map<string, RenderedPage>();
  for (const [index, name] of dayNames().entries()) {
    const firstMinute = (begin + index * DAY_MS) / MINUTE_MS;
    const entries: string[] = [];
    for (let minute = firstMinute; minute < firstMinute + DAY_MS / MINUTE_MS; minute++) {
      for (const draft of traffic.minute(plan, minute)) entries.push(JSON.stringify(toListEntry(draft)));
    }
    addPages(pages, `/shield/event-logs/${zoneId}/${name}`, entries);
  }
  return pages;
}

function addPages(pages: Map<string, RenderedPage>, day: string, entries: readonly string[]): void {
  for (let start = 0, number = 0; start === 0 || start < entries.length; start += PAGE_SIZE, number++) {
    const shown = entries.slice(start, start + PAGE_SIZE);
    const hasMoreData = start + PAGE_SIZE < entries.length;
    const token = hasMoreData ? `page-${number + 1}` : null;
    const rest = JSON.stringify({ hasMoreData, continuationToken: token, startToken: null });
    const body = `{"logs":[${shown.join(",")}],${rest.slice(1)}`;
    const path = number === 0 ? day : `${day}/page-${number}`;
    pages.set(path, {
      gzip: gzipSync(body, { level: 5 }),
      entries: shown.length,
      bytes: Buffer.byteLength(body),
    });
  }
}
