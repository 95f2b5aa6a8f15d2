import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { Refusal } from "../../errors/refusal.ts";
import type { ApiDeps } from "./api-deps.ts";
import { type AlertStream, openAlertStream } from "./open-alert-stream.ts";
import { known, visibleZones, ZoneId } from "./parts.ts";

const STREAMS_PER_KEY = 5;

const Query = z.strictObject({ zone: ZoneId.optional() });
const Headers = z.object({
  "last-event-id": z
    .string()
    .regex(/^\d{1,15}$/, "the id of an event of this stream")
    .transform(Number)
    .optional()
    .describe("The last event that was seen: what came after it is sent first."),
});

/** `GET /api/v1/alerts/stream`: every transition as it happens, as Server-Sent Events. */
export function addAlertStream(app: FastifyInstance, deps: ApiDeps): void {
  const streams = new Map<string, number>();
  const open = new Set<AlertStream>();
  // A server that closes waits for its answers, and these have no end of their own.
  app.addHook("preClose", async () => {
    for (const stream of open) stream.end();
  });
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/alerts/stream",
    {
      exposeHeadRoute: false,
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Alerts"],
        summary: "Follow the alerts",
        description:
          "Server-Sent Events: `alert` for every transition, its id a number that rises by commit on all replicas; `reset` where more was missed than is replayed, or the id is none of this service. A comment keeps the connection alive.",
        querystring: Query,
        headers: Headers,
        response: { 200: { content: { "text/event-stream": { schema: z.string() } } } },
      },
    },
    async (request, reply) => {
      if (reply.raw.destroyed) return reply;
      const caller = known(request.caller);
      const { zone } = request.query;
      visibleZones(caller, zone);
      const key = String(request.headers.accesskey);
      const count = (streams.get(caller.keyId) ?? 0) + 1;
      if (count > (deps.streamsPerKey ?? STREAMS_PER_KEY)) throw tooMany(count - 1);
      streams.set(caller.keyId, count);
      // Of whatever is answered, a refusal as well.
      reply.raw.once("close", () => {
        const left = (streams.get(caller.keyId) ?? 1) - 1;
        if (left === 0) streams.delete(caller.keyId);
        else streams.set(caller.keyId, left);
      });
      const lastId = request.headers["last-event-id"] ?? null;
      const stream = await openAlertStream(deps, reply, { caller, zone, key, lastId });
      if (reply.raw.destroyed) return reply;
      open.add(stream);
      reply.raw.once("close", () => open.delete(stream));
      return reply;
    },
  );
}

function tooMany(open: number): Refusal {
  return new Refusal(429, {
    slug: "too-many-streams",
    detail: `This key has ${open} streams open here, which is all that it may have.`,
    headers: { "retry-after": "30" },
  });
}
