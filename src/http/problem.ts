import { STATUS_CODES } from "node:http";
import { shortenText } from "../edge/escape-text.ts";

export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const MAX_DETAIL_CHARS = 300;

/** RFC 9457. `type` is stable: programs may compare it. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly requestId?: string;
}

export function problemOf(status: number, about: { detail?: string; requestId?: string } = {}): Problem {
  const title = STATUS_CODES[status] ?? "Error";
  const { detail, requestId } = about;
  return {
    type: `urn:longwatch:problem:${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`,
    title,
    status,
    ...(detail === undefined ? {} : { detail: shortenText(detail, MAX_DETAIL_CHARS) }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}
