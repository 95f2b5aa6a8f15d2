/** Receives the whole answer of a call and checks it. */

import type { z } from "zod";
import { readBody } from "#lib/http.ts";
import { isObject, parseJson, sliceEntries } from "#lib/json.ts";
import { EdgeError } from "../edge-error.ts";
import { type EdgeCall, isRepeatable } from "./call.ts";
import { type Exchange, FailedAttempt, malformed, throwStatus } from "./exchange.ts";
import { readFailure } from "./failure.ts";

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

/**
 * Returns an answer with an empty list `member`, and the list's entries byte for byte. A hostile answer of the maximum
 * size then becomes objects only entry by entry. The JSON is undefined if the answer without its entries is no JSON.
 */
export function openList(body: Buffer, member: string): { json: unknown; entries: readonly Buffer[] } {
  const list = sliceEntries(body, member);
  if (list !== null) {
    const rest = Buffer.concat([body.subarray(0, list.start + 1), body.subarray(list.end)]);
    const json = parseJson(rest.toString());
    // A list behind it whose name is written with escapes is the one that counts, and has entries.
    const emptied = isObject(json) ? json[member] : null;
    if (Array.isArray(emptied) && emptied.length === 0) return { json, entries: list.items };
  }
  const json = parseJson(body.toString());
  const entries: unknown = isObject(json) ? json[member] : null;
  if (!isObject(json) || !Array.isArray(entries)) return { json, entries: [] };
  const written = entries.map((entry: unknown) => Buffer.from(JSON.stringify(entry)));
  return { json: { ...json, [member]: [] }, entries: written };
}

/**
 * Returns the parsed answer and keeps unknown members. Throws EDGE_MALFORMED when the JSON does not fulfil the
 * operation's contract.
 */
export function readAnswer<Schema extends z.ZodType>(
  schema: Schema,
  call: EdgeCall,
  reply: EdgeReply,
): z.output<Schema> {
  const parsed = schema.safeParse(reply.json);
  if (parsed.success) return parsed.data;
  // Names paths and types only, because values come from the platform, and a key list's values are credentials.
  const said = parsed.error.issues.map((issue) => `${issue.path.join(".") || "body"}: ${issue.message}`);
  throw new EdgeError({
    operation: call.operation,
    code: "EDGE_MALFORMED",
    disposition: isRepeatable(call) ? "retry" : "give-up",
    text: `the answer has another shape: ${said.join("; ")}`,
    status: reply.status,
    requestId: reply.requestId,
  });
}
