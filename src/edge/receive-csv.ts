import type { Readable } from "node:stream";
import { type Exchange, throwStatus } from "./exchange.ts";
import { FailedAttempt, malformed } from "./failed-attempt.ts";
import { parseJson } from "./parse-json.ts";
import { readFailure } from "./read-failure.ts";

/** A failure in the place of a file is small. */
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

/**
 * Neither status nor content type tells a file from a failure here: errors may be labelled text/csv, files
 * application/json, and a refusal may come with 202. The first byte that is not blank does: no CSV begins with `{` or `<`.
 */
export async function receiveCsv(answer: Exchange, signal: AbortSignal): Promise<CsvReply> {
  const { status, requestId, retryAfterMs } = answer;
  if (status < 200 || status >= 300) return throwStatus(answer, signal);
  const source: Readable = answer.body;
  const rest = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const head: Buffer[] = [];
  let first = "";
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    head.push(next.value);
    first = Buffer.concat(head).toString("latin1").replace("\u00ef\u00bb\u00bf", "").trimStart().charAt(0);
    const isSuspect = first === "{" || first === "<";
    const size = head.reduce((sum, chunk) => sum + chunk.length, 0);
    if (first !== "" && (!isSuspect || size > MAX_SNIFFED_BYTES)) break;
  }
  if (first !== "{" && first !== "<") return { status, requestId, chunks: follow(head, rest) };
  await rest.return?.();
  const text = Buffer.concat(head).toString("utf8");
  const failure = readFailure({ status, json: parseJson(text), text });
  throw new FailedAttempt(
    failure ?? malformed(status, "the answer is not a CSV file"),
    retryAfterMs,
    requestId,
  );
}
