import type { FastifyInstance } from "fastify";
import type { Readiness } from "../readiness.ts";

/** 200 while it can do its work, degraded included; 503 when a required part is failing. */
export function addReadyz(app: FastifyInstance, readReadiness: () => Promise<Readiness>): void {
  app.get("/readyz", { config: { access: "public", isProbe: true } }, async (_request, reply) => {
    const readiness = await readReadiness();
    return reply.code(readiness.state === "failing" ? 503 : 200).send(readiness);
  });
}
