import { Readable } from "node:stream";
import { fetch, type Response } from "undici";
import { z } from "zod";
import type { RemoteService } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { messageOf, ServiceError, toError } from "#lib/errors.ts";
import { BodyTooLargeError, explainTlsFailure, readBody, TlsFailureError } from "#lib/http.ts";
import { isObject } from "#lib/json.ts";
import { toPlainTexts } from "#lib/text.ts";
import { fillAddress } from "#model/operation-address.ts";
import { addressOf } from "#operations/input-schema.ts";
import { type AskOperation, LONG_MS } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";

/** The longest wait for an answer. The service ends a slow question earlier. */
const TIMEOUT_MS = 120_000;
/** No answer of an operation is larger. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;

const Mistakes = z.array(
  z.object({ field: z.string(), value: z.string().exactOptional(), rule: z.string() }),
);

/** Thrown where the service gives no answer that is its own. */
class RemoteError extends ServiceError {
  override readonly name = "RemoteError";
  readonly code = "REMOTE";
  readonly disposition: "wait" | "give-up";

  constructor(disposition: "wait" | "give-up", message: string) {
    super(message);
    this.disposition = disposition;
  }
}

/** Runs operations over HTTP on a service elsewhere, with the rights of a key. A request ends when `stopped` aborts. */
export function askRemotely(remote: RemoteService, stopped?: AbortSignal): AskOperation {
  return async (operation, input) => {
    const address = addressOf(operation);
    const isLong = operation.changes && operation.isLong === true;
    const limit = AbortSignal.timeout(isLong ? LONG_MS : TIMEOUT_MS);
    const signal = stopped === undefined ? limit : AbortSignal.any([limit, stopped]);
    const request = { method: address.method, ...fillAddress(address, input), signal };
    const response = await send(remote, request);
    if (operation.output instanceof z.ZodVoid && response.status === 204) return undefined;
    const answer = parseJson(await readText(remote, response)) ?? undefined;
    const { success, error } = operation.output.safeParse(answer);
    if (success) return answer;
    const { path = [] } = answer === undefined ? {} : (error.issues[0] ?? {});
    const what =
      answer === undefined
        ? "is not JSON"
        : `lacks ${path.join(".") || "its members"}, or has other values there`;
    throw notOurs(remote, `the answer ${what}`);
  };
}

/**
 * Yields the body of an answer that is a stream of lines, as it comes. `begins` is what the first line of every such answer is; empty
 * if there may be no line at all.
 * @throws {Error} also in the middle, if the service ends the answer before its end, and if the answer does not say where it ends
 */
export async function* readRemotely(
  remote: RemoteService,
  {
    path,
    body,
    signal,
    type,
    begins,
  }: { path: string; body: object; signal: AbortSignal; type: string; begins: string },
): AsyncGenerator<Buffer, void, undefined> {
  // The client library reports a cut answer only if the answer is zstd. It takes cut gzip and br for whole.
  const response = await send(remote, { method: "POST", path, query: {}, body, signal, encoding: "zstd" });
  const wrong = findWrong(response, type);
  if (wrong !== null) {
    await response.body?.cancel();
    throw notOurs(remote, wrong);
  }
  const endedEarly = () =>
    new RemoteError(
      "wait",
      `the service at ${remote.url} ended its answer before the end. It may have been stopped, or the key may no longer be valid`,
    );
  let [head, last] = ["", 10];
  try {
    for await (const chunk of response.body ?? []) {
      const bytes = Buffer.from(chunk);
      if (head.length < begins.length) {
        head += bytes.toString("latin1", 0, begins.length - head.length);
        if (!begins.startsWith(head))
          throw notOurs(remote, `the answer does not begin with ${begins.trim()}`);
      }
      last = bytes.at(-1) ?? last;
      yield bytes;
    }
  } catch (thrown) {
    if (signal.aborted || thrown instanceof RemoteError) throw thrown;
    throw endedEarly();
  }
  if (head !== begins || last !== 10) throw endedEarly();
}

/** Returns why an answer is no stream of lines of this type that says where it ends; null if it is one. */
function findWrong({ status, headers }: Response, type: string): string | null {
  const given = headers.get("content-type") ?? "";
  if (status !== 200) return `the answer has the status ${status} instead of 200`;
  if (given.split(";")[0]?.trim().toLowerCase() !== type)
    return `the answer has the type ${JSON.stringify(given)} instead of ${type}`;
  const isDelimited =
    headers.has("content-length") ||
    // Only the last coding delimits. Any other ends with the connection.
    /(?:^|,)\s*chunked\s*$/i.test(headers.get("transfer-encoding") ?? "") ||
    headers.get("content-encoding") === "zstd";
  return isDelimited ? null : "the answer does not say where it ends";
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: object | null;
  readonly signal: AbortSignal;
  /** Left out: those that the client decompresses. */
  readonly encoding?: string;
}

async function send(remote: RemoteService, { method, path, query, body, signal, encoding }: Request) {
  // Not `new URL(path, remote.url)`, which drops the path of a service behind a proxy.
  const url = new URL(`${remote.url}${path}`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  const response = await fetch(url, {
    method,
    headers: {
      accesskey: remote.key.reveal(),
      accept: "application/json",
      ...(body === null ? {} : { "content-type": "application/json" }),
      ...(encoding === undefined ? {} : { "accept-encoding": encoding }),
    },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
    // A redirect would send the key to another address.
    redirect: "error",
    signal,
  }).catch((thrown: unknown) => {
    throw explainFailure(remote, thrown);
  });
  if (response.ok) return response;
  throw toRefusal(remote, response.status, parseJson(await readText(remote, response)));
}

/** Reads an answer, which may come from a program that is no Longwatch and never end. */
async function readText(remote: RemoteService, { body }: Response): Promise<string> {
  if (body === null) return "";
  try {
    return (await readBody(Readable.fromWeb(body), MAX_ANSWER_BYTES)).toString();
  } catch (thrown) {
    if (thrown instanceof BodyTooLargeError) throw notOurs(remote, "the answer is larger than 64 MiB");
    throw explainFailure(remote, thrown);
  }
}

function notOurs({ url }: RemoteService, why: string): RemoteError {
  return new RemoteError(
    "give-up",
    `the service at ${url} does not answer as Longwatch does: ${why}. Check the address. A proxy in front of it may answer instead, or it is another version than this program, ${readVersion()}`,
  );
}

/** Returns null for a text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function explainFailure({ url }: RemoteService, thrown: unknown): Error {
  const failure = explainTlsFailure(thrown, "the service");
  if (failure instanceof TlsFailureError) return failure;
  const why = messageOf(toError(toError(thrown).cause ?? thrown));
  return new RemoteError(
    "wait",
    `the service at ${url} does not answer (${why}). Check the address, and that the service runs`,
  );
}

function toRefusal(remote: RemoteService, status: number, problem: unknown): Error {
  const { detail, title, mistakes } = isObject(problem) ? problem : {};
  if (status === 401)
    return new RemoteError(
      "give-up",
      `the service at ${remote.url} refused the key of LONGWATCH_KEY_FILE: it may be wrong, expired or revoked. "keys list" on the service's machine shows the valid keys`,
    );
  if (!isObject(problem) && status >= 500)
    return new RemoteError(
      "wait",
      `the service at ${remote.url} does not answer: what stands in front of it says HTTP ${status}`,
    );
  if (!isObject(problem) || (status === 404 && detail === undefined))
    return new RemoteError(
      "give-up",
      `the service at ${remote.url} does not know this operation (HTTP ${status}). It may be another version than this program, ${readVersion()}, or no Longwatch`,
    );
  const text = [detail, title].find((one) => typeof one === "string");
  return new Refusal(status, {
    detail: toPlainTexts(text) ?? `refused with ${status}`,
    mistakes: toPlainTexts(Mistakes.safeParse(mistakes).data ?? []),
  });
}
