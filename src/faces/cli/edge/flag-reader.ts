import type { z } from "zod";
import { describeIssue, sortIssues } from "#adapters/edge/transport/check-request.ts";
import { UsageError } from "#lib/errors.ts";
import { escapeText } from "#lib/text.ts";
import { FILTER_RULE, parseFilter } from "#stages/archive/query/read-search.ts";
import { parseTime, TIME_RULE } from "./parse-time.ts";

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

  return { mistakes, notes, wrong, required, integer, id, time, filters, check, checkBody, finish };
}
