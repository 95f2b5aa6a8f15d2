import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { HEALTH_STATES } from "#model/kinds.ts";
import type { Readiness } from "../readiness.ts";

const LIVENESS = {
  tags: ["Service"],
  summary: "Check whether this process is alive",
  response: { 200: z.object({ state: z.literal("ok"), uptimeSeconds: z.int() }) },
};

/** Answers without any check. If this depended on another part, an outage of that part would restart every replica. */
export function addLivez(app: FastifyInstance): void {
  app.get("/livez", { config: { access: "public", isProbe: true }, schema: LIVENESS }, () => ({
    state: "ok",
    uptimeSeconds: Math.floor(process.uptime()),
  }));
}

const Health = z.object({ state: z.enum(HEALTH_STATES), detail: z.string().optional() });
const Answer = Health.extend({ checks: z.record(z.string(), Health) });
const READINESS = {
  tags: ["Service"],
  summary: "Check whether this process can do its work (503 if it cannot)",
  response: { 200: Answer, 503: Answer },
};

/** Answers 200 while the service can work, also when degraded, and 503 while a required part is failing. */
export function addReadyz(app: FastifyInstance, readReadiness: () => Promise<Readiness>): void {
  app.get(
    "/readyz",
    { config: { access: "public", isProbe: true }, schema: READINESS },
    async (_request, reply) => {
      const readiness = await readReadiness();
      return reply.code(readiness.state === "failing" ? 503 : 200).send(readiness);
    },
  );
}
