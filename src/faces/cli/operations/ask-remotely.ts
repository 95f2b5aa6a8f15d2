import { fetch } from "undici";
import type { RemoteService } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { toError } from "#lib/errors.ts";
import { isObject } from "#lib/is-object.ts";
import { messageOf } from "#lib/message-of.ts";
import { explainTlsFailure, TlsFailureError } from "#lib/tls-failure-error.ts";
import { fillAddress } from "#model/operation-address.ts";
import { type AskOperation, LONG_MS, type Operation } from "#operations/operation.ts";
import { addressOf } from "#operations/place-members.ts";
import { type Mistake, Refusal } from "#operations/refusal.ts";

/** The longest wait for an answer. The service ends a slow question earlier. */
const TIMEOUT_MS = 120_000;

/** Runs operations over HTTP on a service elsewhere, with the rights of a key. */
export function askRemotely(remote: RemoteService): AskOperation {
  return async (operation, input) => {
    const response = await send(remote, operation, input);
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return answer;
    throw toRefusal(remote, response.status, answer);
  };
}

function send(remote: RemoteService, operation: Operation, input: object) {
  const address = addressOf(operation);
  const { path, query, body } = fillAddress(address, input);
  // Not `new URL(path, remote.url)`, which drops the path of a service behind a proxy.
  const url = new URL(`${remote.url}${path}`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  const isLong = operation.changes && operation.isLong === true;
  const request = fetch(url, {
    method: address.method,
    headers: {
      accesskey: remote.key.reveal(),
      accept: "application/json",
      ...(body === null ? {} : { "content-type": "application/json" }),
    },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
    // A redirect would send the key to another address.
    redirect: "error",
    signal: AbortSignal.timeout(isLong ? LONG_MS : TIMEOUT_MS),
  });
  return request.catch((thrown: unknown) => {
    throw explainFailure(remote, thrown);
  });
}

function explainFailure({ url }: RemoteService, thrown: unknown): Error {
  const failure = explainTlsFailure(thrown, "the service");
  if (failure instanceof TlsFailureError) return failure;
  const why = messageOf(toError(toError(thrown).cause ?? thrown));
  return new Error(
    `the service at ${url} does not answer (${why}). Check the address, and that the service runs`,
  );
}

function toRefusal(remote: RemoteService, status: number, problem: unknown): Error {
  const { detail, title, mistakes } = isObject(problem) ? problem : {};
  if (status === 401)
    return new Error(
      `the service at ${remote.url} refused the key of LONGWATCH_KEY_FILE: it may be wrong, expired or revoked. "keys list" on the service's machine shows the valid keys`,
    );
  if (!isObject(problem) || (status === 404 && detail === undefined))
    return new Error(
      `the service at ${remote.url} does not know this operation (HTTP ${status}). It may be another version than this program, ${readVersion()}, or no Longwatch`,
    );
  return new Refusal(status, {
    detail: [detail, title].find((text) => typeof text === "string") ?? `refused with ${status}`,
    mistakes: Array.isArray(mistakes) ? (mistakes as Mistake[]) : [],
  });
}
