/** Receives an export as a stream. */
import type { Readable } from "node:stream";
import { parseJson } from "#lib/json.ts";
import type { Deadline } from "#lib/waiting.ts";
import { type EdgeCall, WITH_BODY } from "./call.ts";
import { describeStatus, type Exchange, throwStatus } from "./exchange.ts";
import { FailedAttempt, malformed, readFailure, toEdgeError, toFailedAttempt } from "./failure.ts";

/** Maximum size of an answer that is a failure instead of a file. */
const MAX_SNIFFED_BYTES = 64 * 1_024;

export interface CsvReply {
  readonly status: number;
  readonly requestId: string | null;
  readonly chunks: AsyncGenerator<Buffer, void, undefined>;
}

async function* follow(
  head: readonly Buffer[],
  rest: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/** The first cell of every export is `timestamp`, quoted or not, followed by the end of the cell. */
const HEADER = /^(?:timestamp[ \t]*[,;\r\n]|"timestamp"[ \t]*[,;\r\n])/i;
const WHOLE_HEADER = /^(?:timestamp|"timestamp")$/i;
/** A longer text without a header is no export. */
const MAX_HEADER_CHARS = 64;

/** Returns the text so far, without a byte order mark and leading blanks. */
function startOf(head: readonly Buffer[]): string {
  return Buffer.concat(head).toString("latin1").replace("\u00ef\u00bb\u00bf", "").trimStart();
}

/**
 * Receives a file of CSV. Neither status nor content type distinguishes a file from a failure here: errors may be
 * labelled text/csv, files application/json, and a refusal may come with 202. Only the header does (platform API spec
 * 4.8). An answer without the header is a failure even if it is empty, because an export without events still has its
 * header.
 */
export async function receiveCsv(answer: Exchange, signal: AbortSignal): Promise<CsvReply> {
  const { status, requestId, retryAfterMs } = answer;
  if (status < 200 || status >= 300) return throwStatus(answer, signal);
  const source: Readable = answer.body;
  const rest = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const head: Buffer[] = [];
  let start = "";
  let size = 0;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    head.push(next.value);
    size += next.value.length;
    if (start.length <= MAX_HEADER_CHARS) start = startOf(head);
    if (HEADER.test(start) || size > MAX_SNIFFED_BYTES) break;
  }
  const isFile = HEADER.test(start) || WHOLE_HEADER.test(start);
  if (isFile && WITH_BODY.includes(status)) return { status, requestId, chunks: follow(head, rest) };
  await rest.return?.();
  const text = Buffer.concat(head).toString("utf8");
  const failure = readFailure({ status, json: parseJson(text), text });
  const described = isFile ? describeStatus(status, WITH_BODY) : "the answer is not a CSV file";
  throw new FailedAttempt(failure ?? malformed(status, described), retryAfterMs, requestId);
}

/** Yields the chunks of a stream under its deadline. Errors become EdgeErrors, and nothing is retried. */
export async function* guardStream(
  call: EdgeCall,
  hideKey: (text: string) => string,
  deadline: Deadline,
  callerSignal: AbortSignal | undefined,
  reply: CsvReply,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* reply.chunks;
  } catch (thrown) {
    if (deadline.endedBy() === "caller") throw callerSignal?.reason;
    const failed = toFailedAttempt(thrown, deadline.endedBy());
    throw toEdgeError(call, failed, null, hideKey);
  } finally {
    deadline.release();
  }
}
