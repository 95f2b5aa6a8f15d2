import { createTask, parse, validateDetailed } from "node-cron";

const DAY_S = 86_400;
/** Name, first and last value of each field, in the order of an expression. */
const FIELDS = [
  ["second", 0, 59],
  ["minute", 0, 59],
  ["hour", 0, 23],
  ["dayOfMonth", 1, 31],
  ["month", 1, 12],
  ["dayOfWeek", 0, 7],
] as const;

/** Returns every mistake of a cron expression of six fields, each as a rule that begins with "must". */
export function findCronMistakes(expression: string): string[] {
  const given = expression.trim().split(/\s+/);
  // node-cron also takes five fields, where somebody may have forgotten the seconds, and nicknames.
  if (given.length !== FIELDS.length)
    return ["must have six fields: second, minute, hour, day of month, month, day of week"];
  const wrong = new Set(validateDetailed(expression).errors.map(({ field }) => field));
  if (wrong.has("expression"))
    return ["must be written with digits, names of months and days, * / , - and spaces"];
  return FIELDS.flatMap(([field, first, last], index) => {
    const { [index]: text = "" } = given;
    // node-cron takes */90 in the field of seconds, and runs once a minute.
    const isLongStep = text.split(",").some((part) => Number(part.split("/")[1] ?? 1) > last - first);
    if (!wrong.has(field) && !isLongStep) return [];
    const name = field.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    return [
      `must have *, or ${first} to ${last}, or a list, range or step of these (*/5) as ${name}, not ${text}`,
    ];
  });
}

/** Returns the shortest and the longest time between two runs. The longest is infinite if days of the month are left out. */
export function readPauses(expression: string): { readonly shortestMs: number; readonly longestMs: number } {
  const { second, minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression);
  const times = hour.flatMap((h) => minute.flatMap((m) => second.map((s) => (h * 60 + m) * 60 + s)));
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  // The last Friday of a month is a text.
  const days = [...new Set(dayOfWeek.map((day) => Number(day) % 7))].sort((a, b) => a - b);
  const nightS = (sorted[0] ?? 0) - (sorted.at(-1) ?? 0);
  const pauses = { shortestMs: Number.POSITIVE_INFINITY, longestMs: 0 };
  const add = (seconds: number) => {
    pauses.shortestMs = Math.min(pauses.shortestMs, seconds * 1_000);
    pauses.longestMs = Math.max(pauses.longestMs, seconds * 1_000);
  };
  for (const [index, time] of sorted.slice(1).entries()) add(time - (sorted[index] ?? 0));
  for (const [index, day] of days.entries())
    add(((days[index + 1] ?? (days[0] ?? 0) + 7) - day) * DAY_S + nightS);
  const isWeekly = dayOfMonth.length === 31 && month.length === 12 && !days.some(Number.isNaN);
  return isWeekly ? pauses : { ...pauses, longestMs: Number.POSITIVE_INFINITY };
}

/** A run of a cron expression; epoch ms. */
export interface CronRun {
  /** The time that the expression names, or now at the start. */
  readonly at: number;
  readonly nextAt: number;
  /** The latest next run that another process can have read from the same expression, unless its clock is wrong. */
  readonly latestNextAt: number;
}

/** Returns the first run at or after a time within eight days, epoch ms; null if there is none. */
export function firstRun(expression: string, fromMs: number): number | null {
  const { second, minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression);
  const fits = (at: Date) =>
    minute.includes(at.getUTCMinutes()) &&
    hour.includes(at.getUTCHours()) &&
    dayOfMonth.includes(at.getUTCDate()) &&
    month.includes(at.getUTCMonth() + 1) &&
    dayOfWeek.some((day) => Number(day) % 7 === at.getUTCDay());
  for (let at = fromMs - (fromMs % 60_000); at < fromMs + 8 * DAY_S * 1_000; at += 60_000) {
    const run = second.map((s) => at + s * 1_000).find((one) => one >= fromMs);
    if (run !== undefined && fits(new Date(at))) return run;
  }
  return null;
}

/** Returns the next runs from now on, epoch ms. */
export function nextRuns(expression: string, count: number): number[] {
  const task = createTask(expression, () => undefined, { timezone: "UTC" });
  const runs = task.getNextRuns(count).map((date) => date.getTime());
  void task.destroy();
  return runs;
}
