/** What all HTTP clients need: bodies, `Retry-After` and failures of TLS. */
import type { Readable } from "node:stream";
import { ServiceError, toError } from "./errors.ts";

/**
 * Returns Retry-After as milliseconds from now, from seconds or an HTTP date. A date is compared with the Date header
 * of the same answer if there is one, so that a wrong local clock does not matter. Returns null for invalid text, 0
 * for the past. A number of any length counts, so the result may be Infinity.
 */
export function parseRetryAfter(
  value: string | undefined,
  serverDate: string | undefined,
  nowMs: number,
): number | null {
  const text = value?.trim() ?? "";
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) return null;
  const from = Date.parse(serverDate ?? "");
  return Math.max(at - (Number.isNaN(from) ? nowMs : from), 0);
}

export class BodyTooLargeError extends Error {
  override readonly name = "BodyTooLargeError";
}

/**
 * Returns all bytes of a decoded body. A body longer than `maxBytes` fails, or is cut with `isCut`. The rest is not
 * read in either case, so a decompression bomb costs one chunk.
 */
export async function readBody(body: Readable, maxBytes: number, isCut = false): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      if (!isCut) throw new BodyTooLargeError(`the answer is larger than ${maxBytes} bytes`);
      chunks.push(chunk.subarray(0, chunk.length - (size - maxBytes)));
      break;
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

type Server = "Postgres" | "Redis" | "the service" | "the issuer" | "the receiver";

/** Node's TLS error codes for a certificate that is not trusted. */
const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
const OUTDATED = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);

/**
 * Thrown when a store is reachable but no private connection to it is possible. A retry does not help until a person
 * changes the setup.
 */
export class TlsFailureError extends ServiceError {
  override readonly name = "TlsFailureError";
  readonly code = "STORE_TLS";
  readonly disposition = "give-up";
}

/**
 * Returns an error that says what to do if a store's certificate or a missing certificate is the cause. Returns any
 * other error unchanged.
 */
export function explainTlsFailure(thrown: unknown, store: Server): Error {
  const error = toError(thrown);
  if (error instanceof ServiceError) return error;
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const advice = adviseTls(cause, store);
    if (advice !== null)
      return new TlsFailureError(`${store}: ${cause.message}: ${advice}`, { cause: error });
  }
  return error;
}

const AUTHORITY: Readonly<Record<Server, string>> = {
  Postgres: "DATABASE_URL, sslrootcert=/path/ca.pem",
  Redis: "LONGWATCH_REDIS_CA",
  "the service": "NODE_EXTRA_CA_CERTS",
  "the issuer": "NODE_EXTRA_CA_CERTS",
  "the receiver": "ca_file",
};
const ADDRESS: Readonly<Record<Server, string>> = {
  Postgres: "DATABASE_URL",
  Redis: "REDIS_URL",
  "the service": "LONGWATCH_URL",
  "the issuer": "sign_in.issuer",
  "the receiver": "its address",
};

/** Returns what to do about a failed TLS connection; null for any other error. */
export function adviseTls(error: Error, store: Server): string | null {
  const code = "code" in error ? String(error.code) : "";
  if (UNTRUSTED.has(code)) return `name the file of its authority in ${AUTHORITY[store]}`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `use a name in ${ADDRESS[store]} that the certificate is for, and make sure that this is the server you mean`;
  if (OUTDATED.has(code)) return "the server needs another certificate, or one of the two clocks is wrong";
  if (error.message === "The server does not support SSL connections")
    return "turn TLS on there, or set sslmode=disable in DATABASE_URL if the network in between is private";
  // The server requires TLS (hostssl).
  if (code === "28000" && error.message.includes("no encryption"))
    return "say sslmode=verify-full in DATABASE_URL";
  // One side used plain text and the other expected a TLS handshake.
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" && store !== "Postgres") {
    const [plain, encrypted] = store === "Redis" ? ["redis", "rediss"] : ["http", "https"];
    return `it does not speak TLS at this port: ${plain}:// instead of ${encrypted}://, or its other port`;
  }
  return null;
}
