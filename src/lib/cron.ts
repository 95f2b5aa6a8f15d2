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

/** Returns the shortest and the longest time between two runs. The longest is infinite if days are left out. */
export function readPauses(expression: string): { readonly shortestMs: number; readonly longestMs: number } {
  const { second, minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression);
  const times = hour.flatMap((h) => minute.flatMap((m) => second.map((s) => (h * 60 + m) * 60 + s)));
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  let before = (sorted.at(-1) ?? 0) - DAY_S;
  const pauses = { shortestMs: Number.POSITIVE_INFINITY, longestMs: 0 };
  for (const time of sorted) {
    pauses.shortestMs = Math.min(pauses.shortestMs, (time - before) * 1_000);
    pauses.longestMs = Math.max(pauses.longestMs, (time - before) * 1_000);
    before = time;
  }
  const isDaily = dayOfMonth.length === 31 && month.length === 12 && dayOfWeek.length === 7;
  return isDaily ? pauses : { ...pauses, longestMs: Number.POSITIVE_INFINITY };
}

/** Returns the next runs from now on, epoch ms. */
export function nextRuns(expression: string, count: number): number[] {
  const task = createTask(expression, () => undefined, { timezone: "UTC" });
  const runs = task.getNextRuns(count).map((date) => date.getTime());
  void task.destroy();
  return runs;
}
