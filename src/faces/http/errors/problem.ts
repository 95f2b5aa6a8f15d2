import { STATUS_CODES } from "node:http";
import { shortenText } from "#lib/text.ts";
import type { Mistake } from "#operations/refusal.ts";

export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const MAX_DETAIL_CHARS = 300;

/** RFC 9457. `type` is stable: programs may compare it. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  /** All broken rules of the request. */
  readonly mistakes?: readonly Mistake[];
  readonly requestId?: string;
}

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
    ...(mistakes.length === 0 ? {} : { mistakes }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}
