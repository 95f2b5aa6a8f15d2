import type { Readable } from "node:stream";
import type { Pool } from "undici";
import type { Clock } from "#lib/clock.ts";
import { parseJson } from "#lib/parse-json.ts";
import { readBody } from "#lib/read-body.ts";
import { parseRetryAfter } from "#lib/retry-after.ts";
import type { Secret } from "#lib/secret.ts";
import { decodeBody } from "./decode-body.ts";
import type { EdgeCall } from "./edge-call.ts";
import { FailedAttempt } from "./failed-attempt.ts";
import { readFailure } from "./read-failure.ts";

/** Maximum number of bytes read of an error body. */
const MAX_ERROR_BYTES = 1_024 * 1_024;

export interface Exchange {
  readonly status: number;
  readonly contentType: string;
  /** The decoded body; must be read to its end or destroyed. */
  readonly body: Readable;
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;
}

function only(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Sends one request and waits for the head of its answer. Sends only the headers that are needed: an Accept header is
 * known to break a list of this platform. Redirects are not followed, because the key would be sent along.
 * `idleTimeoutMs` limits silence; 0 leaves all limits to the signal.
 */
export async function exchange(
  pool: Pool,
  connection: { basePath: string; accessKey: Secret; clock: Clock },
  call: EdgeCall,
  idleTimeoutMs: number,
  signal: AbortSignal,
): Promise<Exchange> {
  const response = await pool.request({
    method: call.method,
    path: `${connection.basePath}${call.path}`,
    headers: {
      AccessKey: connection.accessKey.reveal(),
      "accept-encoding": "gzip",
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
    },
    body: call.body === undefined ? null : JSON.stringify(call.body),
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    signal,
  });
  const { headers } = response;
  return {
    status: response.statusCode,
    contentType: only(headers["content-type"])?.toLowerCase() ?? "",
    body: decodeBody(response.body, only(headers["content-encoding"])),
    requestId: only(headers["cdn-requestid"]) ?? null,
    retryAfterMs: parseRetryAfter(only(headers["retry-after"]), only(headers["date"]), connection.clock()),
  };
}

/**
 * Throws the failure of an answer whose status is not 2xx. If its body is cut, damaged or missing, only the status
 * decides.
 */
export async function throwStatus(answer: Exchange, signal: AbortSignal): Promise<never> {
  const body = await readBody(answer.body, MAX_ERROR_BYTES, true).catch(() => Buffer.alloc(0));
  signal.throwIfAborted();
  const text = body.toString("utf8");
  const failure = readFailure({ status: answer.status, json: parseJson(text), text });
  if (failure === null) throw new Error(`status ${answer.status} is not a failure`);
  throw new FailedAttempt(failure, answer.retryAfterMs, answer.requestId);
}
