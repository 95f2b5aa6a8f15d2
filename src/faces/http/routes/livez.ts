import type { FastifyInstance } from "fastify";
import { z } from "zod";

const schema = {
  tags: ["Service"],
  summary: "Check whether this process is alive",
  response: { 200: z.object({ state: z.literal("ok"), uptimeSeconds: z.int() }) },
};

/** Answers without any check. If this depended on another part, an outage of that part would restart every replica. */
export function addLivez(app: FastifyInstance): void {
  app.get("/livez", { config: { access: "public", isProbe: true }, schema }, () => ({
    state: "ok",
    uptimeSeconds: Math.floor(process.uptime()),
  }));
}
