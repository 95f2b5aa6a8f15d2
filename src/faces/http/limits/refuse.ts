/** Requests that are refused before they cost anything. */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { formatWhole } from "#lib/format.ts";
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

interface CostEstimate {
  /** The cost of the search, as a number of events to read. */
  readonly rows: number;
}

/** @throws {Refusal} 400 that says how to narrow the search */
type RefuseCostly = (estimate: CostEstimate) => void;

/** Refuses a search that its time limit would stop, before it runs. */
export function createRefuseCostly(maxRows: number): RefuseCostly {
  return ({ rows }) => {
    if (rows <= maxRows) return;
    const detail = `The search would cost as much as reading ${round(rows)} events; at most ${round(maxRows)} are allowed. Choose a shorter time range, or filter by rule or address.`;
    throw new Refusal(400, { slug: "too-costly", detail });
  };
}

/** Rounds to two digits, because the estimate is not more exact. */
function round(rows: number): string {
  return formatWhole(Number(rows.toPrecision(2)));
}

export type HeavyWork = "read" | "export";

export interface ConcurrencyLimits {
  /** Maximum per key and kind. There is no limit over all keys, because a few keys could use it up. */
  readonly perKey: Readonly<Record<HeavyWork, number>>;
}

/** Limits each key's requests on routes that declare `heavy`, until their answers are sent or cut off. */
export function addConcurrencyLimit(app: FastifyInstance, { perKey }: ConcurrencyLimits): void {
  const running = new Map<string, number>();
  const add = (place: string, change: number) => {
    const now = (running.get(place) ?? 0) + change;
    if (now === 0) running.delete(place);
    else running.set(place, now);
  };
  app.addHook("onRequest", async (request, reply) => {
    const { routeOptions, caller } = request;
    const { heavy } = routeOptions.config;
    // A client that left while the key was looked up emits no second close event.
    if (heavy === undefined || caller === null || reply.raw.destroyed) return;
    const place = `${heavy} ${caller.keyId}`;
    if ((running.get(place) ?? 0) >= perKey[heavy]) {
      const detail = `This key already has ${perKey[heavy]} ${heavy} request(s) in progress. Wait until one of them ends.`;
      throw new Refusal(429, { slug: "too-many-at-once", detail, headers: { "retry-after": "1" } });
    }
    add(place, 1);
    reply.raw.once("close", () => add(place, -1));
  });
}
