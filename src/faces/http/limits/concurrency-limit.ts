import type { FastifyInstance } from "fastify";
import { Refusal } from "#operations/refusal.ts";

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
