import { DAY_MS, MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";

/** Older events than this are no history, so a zone that was silent for so long begins anew. */
const HISTORY_HOURS = 170;

/** Returns the first minute (since the epoch) whose events are the history of a zone. */
export function startOfHistory(nowMs: number): number {
  return Math.floor(nowMs / (60 * MINUTE_MS)) * 60 - HISTORY_HOURS * 60;
}

/** Returns the minute in which a zone's first day ends; null before its first event. Minutes are numbered since the epoch. */
export function learningUntil(firstMinute: number | null): number | null {
  return firstMinute === null ? null : firstMinute + MINUTES_PER_DAY;
}

/** Returns whether a minute is in a zone's first day. There is nothing to compare with then. */
export function isLearning(firstMinute: number | null, minute: number): boolean {
  const until = learningUntil(firstMinute);
  return until === null || minute < until;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Says until when a zone is in its first day, and the effect. `untilMs` is at most a day ahead, so the weekday names the day. */
export function describeLearning(untilMs: number): string {
  const day = DAYS[(Math.floor(untilMs / DAY_MS) + 4) % 7];
  const time = new Date(untilMs).toISOString().slice(11, 16);
  return `learning until ${day} ${time} UTC: only attacks over the fixed lines are told`;
}
