import type { FastifyInstance } from "fastify";

/** Alive is whoever answers: it must not depend on anything else, or an outage elsewhere restarts every replica. */
export function addLivez(app: FastifyInstance): void {
  app.get("/livez", { config: { access: "public", isProbe: true } }, () => ({
    state: "ok",
    uptimeSeconds: Math.floor(process.uptime()),
  }));
}
