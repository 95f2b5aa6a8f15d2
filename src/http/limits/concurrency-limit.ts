import type { FastifyInstance } from "fastify";
import { Refusal } from "../errors/refusal.ts";

export type HeavyWork = "search" | "export";

export interface ConcurrencyLimits {
  /** Requests of one key that are worked on at once, by kind. */
  readonly perKey: Readonly<Record<HeavyWork, number>>;
  /** Requests of all keys together, in this process, by kind: exports must leave connections to searches. */
  readonly total: Readonly<Record<HeavyWork, number>>;
}

/**
 * Holds routes that declare `heavy` to so many at once. A place is given back when the answer is sent or cut off, or
 * before that by `request.leavePlace`.
 */
export function addConcurrencyLimit(app: FastifyInstance, { perKey, total }: ConcurrencyLimits): void {
  const running = new Map<string, number>();
  const count = (place: string) => running.get(place) ?? 0;
  const add = (place: string, change: number) => {
    const now = count(place) + change;
    if (now === 0) running.delete(place);
    else running.set(place, now);
  };
  app.decorateRequest("leavePlace", null);
  app.addHook("onRequest", async (request, reply) => {
    const { routeOptions, caller } = request;
    const { heavy } = routeOptions.config;
    // A client that left while the key was looked up emits no second close event.
    if (heavy === undefined || caller === null || reply.raw.destroyed) return;
    const own = `${heavy} ${caller.keyId}`;
    if (count(own) >= perKey[heavy])
      throw busy(`This key already has ${perKey[heavy]} ${heavy} request(s) in progress`);
    if (count(heavy) >= total[heavy])
      throw busy(`All keys together already have ${total[heavy]} ${heavy} request(s) in progress`);
    for (const place of [own, heavy]) add(place, 1);
    const leave = () => {
      if (request.leavePlace === null) return;
      request.leavePlace = null;
      for (const place of [own, heavy]) add(place, -1);
    };
    request.leavePlace = leave;
    reply.raw.once("close", leave);
  });
}

function busy(what: string): Refusal {
  return new Refusal(429, {
    slug: "too-many-at-once",
    detail: `${what}. Wait until one of them ends.`,
    headers: { "retry-after": "1" },
  });
}
