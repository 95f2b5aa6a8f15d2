/** Limits requests, and records refusals. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "#lib/clock.ts";
import { createRateLimiter, type Taken } from "#lib/rate-limiter.ts";
import { actorOf } from "#operations/caller.ts";
import { Refusal } from "#operations/refusal.ts";
import { networkOf } from "./origin.ts";

const WINDOW_MS = 60_000;
const MAX_KEYS = 10_000;

export interface RequestLimits {
  /** Maximum number of requests of one key in this process. */
  readonly perKeyAndMinute: number;
  /** Maximum number of requests of one IPv4 address or IPv6 /64, with or without a key. */
  readonly perAddressAndMinute: number;
}

interface LimitParts {
  readonly limits: RequestLimits;
  readonly clock: Clock;
  readonly note: NoteSecurityEvent;
}

/**
 * Maximum number of probes of one address. A load balancer probes from one address for all clients, and more often than
 * any other client.
 */
const PROBES_PER_MINUTE = 1_200;

/** Limits by network, before any look-up. Probes are counted separately. */
export function limitAddresses(app: FastifyInstance, { limits, clock, note }: LimitParts): void {
  const quota = limits.perAddressAndMinute;
  const limiter = createRateLimiter({ quota, windowMs: WINDOW_MS, maxKeys: MAX_KEYS });
  const probes = createRateLimiter({ quota: PROBES_PER_MINUTE, windowMs: WINDOW_MS, maxKeys: MAX_KEYS });
  app.addHook("onRequest", async (request, reply) => {
    const isProbe = request.routeOptions.config.isProbe === true;
    const taken = (isProbe ? probes : limiter).take(networkOf(request), clock());
    if (taken.isAllowed) return;
    note({ action: "rate.limited", actor: "nobody", ...aboutRequest(request) }, clock());
    refuse(reply, "address", isProbe ? PROBES_PER_MINUTE : quota, taken);
  });
}

/** Limits by key, after the key was looked up. Every answer states the rest of the quota. */
export function limitKeys(app: FastifyInstance, { limits, clock, note }: LimitParts): void {
  const quota = limits.perKeyAndMinute;
  const limiter = createRateLimiter({ quota, windowMs: WINDOW_MS, maxKeys: MAX_KEYS });
  app.addHook("onRequest", async (request, reply) => {
    const { caller } = request;
    if (caller === null) return;
    const taken = limiter.take(caller.keyId, clock());
    sendQuota(reply, "key", quota, taken);
    if (taken.isAllowed) return;
    note({ action: "rate.limited", actor: actorOf(caller), ...aboutRequest(request) }, clock());
    refuse(reply, "key", quota, taken);
  });
}

/** Describes a request for an event: the route's pattern, never the address, which may contain a client's input. */
export function aboutRequest(request: FastifyRequest) {
  const { method, routeOptions } = request;
  return {
    subject: `${method} ${routeOptions.url ?? "(no route)"}`,
    details: { network: networkOf(request), requestId: request.id },
  };
}

/** Sets the header fields of draft-ietf-httpapi-ratelimit-headers-10: the policy and the remaining quota. */
function sendQuota(reply: FastifyReply, policy: string, quota: number, { remaining, resetMs }: Taken): void {
  void reply
    .header("ratelimit-policy", `"${policy}";q=${quota};w=${WINDOW_MS / 1_000}`)
    .header("ratelimit", `"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`);
}

function refuse(reply: FastifyReply, policy: "key" | "address", quota: number, taken: Taken): void {
  sendQuota(reply, policy, quota, taken);
  refuseSpent(taken, `This ${policy} may send at most ${quota} requests a minute.`);
}

/** @throws {Refusal} 429 if the quota is used up */
export function refuseSpent({ isAllowed, retryAfterMs }: Taken, detail: string): void {
  if (isAllowed) return;
  const headers = { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) };
  throw new Refusal(429, { detail, headers });
}

export type SecurityAction =
  | "key.refused"
  | "sign-in.refused"
  | "scope.denied"
  | "zone.denied"
  | "rate.limited";

interface SecurityEvent {
  readonly action: SecurityAction;
  readonly actor: string;
  /** The requested method and route. */
  readonly subject: string;
  readonly details: Readonly<Record<string, string>>;
}

type WrittenEvent = Omit<SecurityEvent, "details"> & {
  /** `notWritten`: number of events of the same action that were omitted since the previous entry. */
  readonly details: Readonly<Record<string, string | number>>;
};

export interface SecurityEventsOptions {
  readonly write: (event: WrittenEvent) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export type NoteSecurityEvent = (event: SecurityEvent, nowMs: number) => void;

/** Ten entries of each action at once, then one a minute. */
const QUOTA = { quota: 10, windowMs: 10 * 60_000, maxKeys: 10 };

/**
 * Writes an audit entry for a refused request, at a limited rate. Omitted events are counted, and the next entry of the
 * same action contains their number.
 */
export function createSecurityEvents({ write, onError }: SecurityEventsOptions): NoteSecurityEvent {
  const limiter = createRateLimiter(QUOTA);
  const leftOut = new Map<SecurityAction, number>();
  return (event, nowMs) => {
    const { action } = event;
    const before = leftOut.get(action) ?? 0;
    if (!limiter.take(action, nowMs).isAllowed) {
      leftOut.set(action, before + 1);
      return;
    }
    leftOut.delete(action);
    const details = { ...event.details, ...(before > 0 ? { notWritten: before } : {}) };
    write({ ...event, details }).catch(onError);
  };
}
