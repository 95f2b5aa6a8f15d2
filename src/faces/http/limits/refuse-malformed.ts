import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import { Refusal } from "#operations/refusal.ts";

/** Maximum depth of a body. No valid body is half as deep. */
export const MAX_DEPTH = 32;

/** Refuses a body that is nested too deeply. Code that walks a body recursively relies on this. */
export function refuseDeepBody(body: unknown): void {
  if (!isTooDeep(body)) return;
  const rule = `must not be nested more than ${MAX_DEPTH} deep`;
  throw new Refusal(400, { slug: "invalid-request", mistakes: [{ field: "body", rule }] });
}

/** Returns whether a list or object lies in more than 31 others. */
export function isTooDeep(body: unknown): boolean {
  let level = [body].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap(Object.values).filter(isContainer);
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}

/** Refuses a compressed body. The service cannot decompress it and would report it as invalid JSON. */
export function refuseEncodedBody({ headers }: Pick<FastifyRequest, "headers">): void {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (!hasBody || encoding === "" || encoding === "identity") return;
  throw new Refusal(415, { detail: "The request body has a content encoding. Send the body without one." });
}

/** Refuses a request with two Host headers (RFC 9112, section 3.2): a proxy in front may have read the other one. */
export function refuseTwoHosts({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): void {
  // Names and values by turns. A request that Fastify injects has no `headersDistinct`.
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  if (hosts.length > 1) throw new Refusal(400, { detail: "The request has more than one Host header." });
}
