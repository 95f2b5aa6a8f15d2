import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";
import { Refusal } from "#operations/refusal.ts";
import type { Backlog } from "../backlog.ts";
import type { Metrics } from "../metrics.ts";

const schema = {
  tags: ["Service"],
  summary: "Show metrics in the Prometheus text format",
  response: { 200: { content: { "text/plain": { schema: z.string() } } } },
};

export interface MetricsRoute {
  readonly metrics: Metrics;
  readonly readBacklog: () => Promise<Backlog>;
  /** If false, a key with the scope read for all zones is required. */
  readonly isPublic: boolean;
  readonly timeoutMs: number;
  readonly onError: (name: string, error: Error) => void;
}

/** Serves the metrics for Prometheus. The process's own metrics work without the database. */
export function addMetrics(
  app: FastifyInstance,
  { metrics, readBacklog, isPublic, timeoutMs, onError }: MetricsRoute,
): void {
  const access = isPublic ? ("public" as const) : ({ scope: "read" } as const);
  app.get("/metrics", { config: { access }, schema }, async ({ caller }, reply) => {
    // They name every zone and channel, as the status does for keys of every zone only.
    if (!isPublic && caller?.zoneIds !== null)
      throw new Refusal(403, {
        detail: "This key is for some zones only, but the metrics cover all zones. Use a key for every zone.",
      });
    let backlog: Backlog | null = null;
    const reading = readBacklog().then(
      (read) => {
        backlog = read;
      },
      (thrown: unknown) => onError("backlog", toError(thrown)),
    );
    await within(reading, timeoutMs);
    metrics.setBacklog(backlog);
    return reply.header("content-type", metrics.contentType).send(await metrics.render());
  });
}
