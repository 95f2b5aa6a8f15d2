import type { EventsReport } from "./replay-events.ts";
import { toCell, writeLines } from "./write-lines.ts";

/** Writes one row per alert: the time at which it opened, and the end of its last minute above the line. */
export function writeEpisodes(path: string, { alerts }: EventsReport): Promise<void> {
  return writeLines(path, lines(alerts));
}

function* lines(alerts: EventsReport["alerts"]): Generator<string> {
  yield "zone,kind,key,severity,start,end\n";
  for (const { zone, kind, key, severity, openedAt, lastActiveAt } of alerts)
    yield `${toCell(zone)},${kind},${toCell(key)},${severity},${openedAt * 60},${Math.max(lastActiveAt, openedAt) * 60}\n`;
}
