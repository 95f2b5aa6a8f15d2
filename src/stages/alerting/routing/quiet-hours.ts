import { WEEKDAYS, type Weekday } from "#model/kinds.ts";
import type { Subject } from "#model/subject.ts";
import { matchesSubject } from "#model/subject.ts";
import { type QuietHours } from "./routing.ts";

/** Returns the channels of `channels` that are in quiet hours for this subject now. */
export function findQuietChannels(
  quietHours: readonly QuietHours[],
  subject: Subject,
  channels: readonly string[],
  nowMs: number,
): ReadonlySet<string> {
  const inForce = quietHours.filter(
    (hours) =>
      !(subject.severity === "critical" && hours.critical === "tell") &&
      matchesSubject(hours.matchers, subject) &&
      isQuiet(hours, nowMs),
  );
  const isHeld = (channel: string) =>
    inForce.some(({ channels: named }) => named === null || named.includes(channel));
  return new Set(channels.filter(isHeld));
}

/** Uses the wall clock: quiet hours keep their times if summer time begins or ends during them. */
export function isQuiet({ timeZone, days, fromMinute, toMinute }: QuietHours, nowMs: number): boolean {
  const { weekday, minute } = readWallClock(timeZone, nowMs);
  if (fromMinute < toMinute) return days.includes(weekday) && minute >= fromMinute && minute < toMinute;
  if (minute >= fromMinute) return days.includes(weekday);
  return minute < toMinute && days.includes(dayBefore(weekday));
}

function dayBefore(weekday: Weekday): Weekday {
  return WEEKDAYS[(WEEKDAYS.indexOf(weekday) + 6) % 7] as Weekday;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function readWallClock(timeZone: string, nowMs: number): { weekday: Weekday; minute: number } {
  const format = formats.get(timeZone) ?? createFormat(timeZone);
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  return {
    weekday: (parts.get("weekday") ?? "").slice(0, 3).toLowerCase() as Weekday,
    minute: Number(parts.get("hour")) * 60 + Number(parts.get("minute")),
  };
}

/** Making one costs far more than using it; there are as many as zones in the configuration. */
function createFormat(timeZone: string): Intl.DateTimeFormat {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  formats.set(timeZone, format);
  return format;
}
