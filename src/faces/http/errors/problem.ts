/** The JSON of a refusal (RFC 9457). */

import { STATUS_CODES } from "node:http";
import { z } from "zod";
import { shortenText } from "#lib/text.ts";
import type { Mistake } from "#operations/refusal.ts";

/** The JSON of a refusal (RFC 9457), as the API's document shows it. */
export const Problem = z
  .object({
    type: z.string().describe("The type is stable. Programs may compare it."),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().optional(),
    mistakes: z
      .array(z.object({ field: z.string(), value: z.string().optional(), rule: z.string() }))
      .optional()
      .describe("All rules that the request breaks."),
    requestId: z.string().optional(),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof Problem>;

export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const MAX_DETAIL_CHARS = 300;

export interface ProblemAbout {
  readonly detail?: string | undefined;
  readonly slug?: string | undefined;
  readonly mistakes?: readonly Mistake[] | undefined;
  readonly requestId?: string | undefined;
}

/** Returns the first mistake in one line, with the number of further mistakes. */
function summarise(mistakes: readonly Mistake[]): string | undefined {
  const [first] = mistakes;
  const more = mistakes.length > 1 ? ` (and ${mistakes.length - 1} more)` : "";
  return first === undefined ? undefined : `${first.field}: ${first.rule}${more}`;
}

export function problemOf(status: number, about: ProblemAbout = {}): Problem {
  const title = STATUS_CODES[status] ?? "Error";
  const { slug, mistakes = [], requestId } = about;
  const detail = about.detail ?? summarise(mistakes);
  return {
    type: `urn:longwatch:problem:${slug ?? title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`,
    title,
    status,
    ...(detail === undefined ? {} : { detail: shortenText(detail, MAX_DETAIL_CHARS) }),
    ...(mistakes.length === 0 ? {} : { mistakes: [...mistakes] }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}
