import { parseJson } from "#lib/parse-json.ts";
import { readBody } from "#lib/read-body.ts";
import type { EdgeCall } from "./edge-call.ts";
import { type Exchange, throwStatus } from "./exchange.ts";
import { FailedAttempt, malformed } from "./failed-attempt.ts";
import { openList } from "./open-list.ts";
import { readFailure } from "./read-failure.ts";

/** A whole, successful answer. */
export interface EdgeReply {
  readonly status: number;
  /** The body parsed once; undefined when the call expects nothing and got nothing. */
  readonly json: unknown;
  /** The entries of the call's `list`, byte for byte; the list itself is then empty. */
  readonly entries: readonly Buffer[];
  /** The body byte for byte as the platform wrote it (decompressed). */
  readonly body: Buffer;
  readonly requestId: string | null;
}

/** Maximum number of bytes quoted from an answer. */
const START_BYTES = 1_024;

function describe(text: string): string {
  const start = text.trimStart();
  if (start === "") return "the answer is empty where JSON was expected";
  return start.startsWith("<")
    ? "the answer is an HTML page where JSON was expected"
    : "the answer is not complete JSON";
}

/** Returns the message for a success status that this operation does not have. */
export function describeStatus(status: number, successes: readonly number[]): string {
  return `HTTP ${status} where only ${successes.join(", ")} is a success`;
}

/** Reads an answer to its end. Throws a FailedAttempt for every failure, even one with a success status. */
export async function receiveReply(
  call: EdgeCall,
  answer: Exchange,
  maxBodyBytes: number,
  signal: AbortSignal,
): Promise<EdgeReply> {
  const { status, requestId, retryAfterMs } = answer;
  if (status < 200 || status >= 300) return throwStatus(answer, signal);
  const body = await readBody(answer.body, maxBodyBytes);
  const text = body.toString("utf8", 0, START_BYTES);
  const { json, entries } =
    call.list === undefined ? { json: parseJson(body.toString()), entries: [] } : openList(body, call.list);
  const failure = readFailure({ status, json, text });
  if (failure !== null) throw new FailedAttempt(failure, retryAfterMs, requestId);
  // The document shows no body for some operations.
  const isEmpty = call.mayBeEmpty === true && text.trim() === "";
  if (isEmpty) return { status, json: {}, entries, body, requestId };
  const isUnread = call.expects === "json" ? json === undefined : text.trimStart().startsWith("<");
  if (isUnread) throw new FailedAttempt(malformed(status, describe(text)), retryAfterMs, requestId);
  if (call.successes?.includes(status) === false)
    throw new FailedAttempt(
      malformed(status, describeStatus(status, call.successes)),
      retryAfterMs,
      requestId,
    );
  return { status, json, entries, body, requestId };
}
