import type { FastifyInstance } from "fastify";
import { toError } from "../../errors.ts";
import { within } from "../../queue/within.ts";
import type { Backlog, Metrics } from "../metrics.ts";

export interface MetricsRoute {
  readonly metrics: Metrics;
  readonly readBacklog: () => Promise<Backlog>;
  readonly timeoutMs: number;
  readonly onError: (name: string, error: Error) => void;
}

/** For Prometheus. The process's own numbers are there also when the database is not. */
export function addMetrics(
  app: FastifyInstance,
  { metrics, readBacklog, timeoutMs, onError }: MetricsRoute,
): void {
  app.get("/metrics", async (_request, reply) => {
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
