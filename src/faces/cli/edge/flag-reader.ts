/** Reads flags, and times as people write them. */
import type { z } from "zod";
import { FILTER_RULE, parseFilter } from "#archive/rules/query/read-search.ts";
import { UsageError } from "#lib/errors.ts";
import { escapeText } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { ZoneIds } from "#operations/fields.ts";
import { describeIssue, sortIssues } from "#platform/transport/call.ts";

export type FlagReader = ReturnType<typeof createFlagReader>;

/**
 * Reads flags and notes every mistake with flag, value and rule. `finish` throws all mistakes as one UsageError. A value
 * that cannot be read becomes undefined.
 */
export function createFlagReader(nowMs: number) {
  const mistakes: string[] = [];
  const notes: string[] = [];

  function wrong(flag: string, value: string | undefined, rule: string): undefined {
    const shown = value === undefined ? "is missing; it" : `"${escapeText(value)}"`;
    mistakes.push(`--${flag} ${shown} must be ${rule}`);
  }

  function required(flag: string, value: string | undefined, rule: string): string | undefined {
    return value === undefined || value === "" ? wrong(flag, value, rule) : value;
  }

  function integer(flag: string, value: string | undefined, rule: string): number | undefined {
    if (value === undefined) return undefined;
    return /^-?\d{1,15}$/.test(value) ? Number(value) : wrong(flag, value, rule);
  }

  function id(flag: string, value: string | undefined, rule: string): number | undefined {
    if (value === undefined) return wrong(flag, value, rule);
    const number = /^[1-9]\d{0,9}$/.test(value) ? Number(value) : 0;
    return number >= 1 && number <= 2_147_483_647 ? number : wrong(flag, value, rule);
  }

  /** Zones with commas, or all. */
  function zones(flag: string, value: string | undefined): string | undefined {
    const isRead = value !== undefined && ZoneIds.safeParse(value).success;
    return isRead ? value : wrong(flag, value, "a shield zone's number, several with commas, or all");
  }

  function time(flag: string, value: string | undefined): number | undefined {
    const at = value === undefined ? null : parseTime(value, nowMs);
    return at ?? wrong(flag, value, TIME_RULE);
  }

  function filters(values: readonly string[]): { field: string; op: string; value: string[] }[] {
    return values.flatMap((value) => parseFilter(value) ?? wrong("filter", value, FILTER_RULE) ?? []);
  }

  /** Checks a whole request against its schema. `skip` names members whose flags were already reported. */
  function check<Schema extends z.ZodType>(
    schema: Schema,
    value: unknown,
    skip: readonly string[] = [],
  ): z.output<Schema> | undefined {
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    const issues = parsed.error.issues.filter((issue) => !skip.includes(String(issue.path[0])));
    mistakes.push(...issues.map((issue) => describeIssue(issue, value)));
    return undefined;
  }

  /**
   * Checks a body that a person wrote. It is sent as it is unless a member has another type than the platform's API shows;
   * everything else that the official description rules out becomes a note.
   */
  function checkBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> | undefined {
    const { wrong: broken, unshown } = sortIssues(schema, body);
    mistakes.push(...broken.map((issue) => describeIssue(issue, body)));
    notes.push(...unshown.map((issue) => describeIssue(issue, body)));
    return broken.length > 0 ? undefined : (body as z.output<Schema>);
  }

  function finish(): void {
    if (mistakes.length > 0) throw new UsageError(mistakes);
  }

  return { mistakes, notes, wrong, required, integer, id, zones, time, filters, check, checkBody, finish };
}

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** Eleven digits. A smaller number is a time in seconds, typed by mistake. */
const FIRST_EPOCH_MS = 10_000_000_000;

export const TIME_RULE =
  "epoch milliseconds, a time such as 2026-11-27T20:51 or 2026-11-27 20:51 (UTC if it names no zone), now, today, yesterday, or relative such as -2h";

/** ISO 8601, and the forms in which Longwatch prints times. */
const WRITTEN =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(?: ?(UTC|Z|[+-]\d\d:?\d\d))?)?(?: UTC)?$/i;
const RELATIVE = /^([+-])((?:\d{1,9}(?:\.\d{1,6})?(?:ms|[smhdw]))+)$/;

function parseWritten(text: string): number | null {
  const [, day, time = "00:00", zone = "Z"] = WRITTEN.exec(text) ?? [];
  if (day === undefined) return null;
  const at = Date.parse(`${day}T${time}${zone.toUpperCase() === "UTC" ? "Z" : zone}`);
  // Date.parse rolls 02-30 over into March.
  const isReal = !Number.isNaN(at) && new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(8, 10));
  return isReal ? at : null;
}

/** Parses a time as people type it, or as Longwatch prints it. Returns epoch ms, or null if the text is no time. */
export function parseTime(given: string, nowMs: number): number | null {
  const text = given.trim();
  if (text === "now") return nowMs;
  const today = nowMs - (nowMs % DAY_MS);
  if (text === "today") return today;
  if (text === "yesterday") return today - DAY_MS;
  const [, sign, spans] = RELATIVE.exec(text) ?? [];
  if (spans !== undefined) {
    const parts = [...spans.matchAll(/([\d.]+)(ms|[smhdw])/g)];
    const spanMs = parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? 0), 0);
    return Math.round(sign === "-" ? nowMs - spanMs : nowMs + spanMs);
  }
  if (/^\d{1,15}$/.test(text)) return Number(text) >= FIRST_EPOCH_MS ? Number(text) : null;
  return parseWritten(text);
}
