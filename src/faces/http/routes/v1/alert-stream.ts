import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { known, visibleZones, ZoneId } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { type AlertStream, type FeedDeps, openAlertStream } from "./open-alert-stream.ts";

const STREAMS_PER_KEY = 5;

const Query = z.strictObject({ zone: ZoneId.optional() });
const Headers = z.object({
  "last-event-id": z
    .string()
    .regex(/^\d{1,15}$/, "must be the id of an event of this stream")
    .transform(Number)
    .optional()
    .describe(
      "The id of the last event that the client received. The stream begins with the events after it.",
    ),
});

/** `GET /api/v1/alerts/stream`: every transition as it happens, as Server-Sent Events. */
export function addAlertStream(app: FastifyInstance, deps: FeedDeps): void {
  const streams = new Map<string, number>();
  const open = new Set<AlertStream>();
  // A server that closes waits for its answers, and these have no end of their own.
  let isClosing = false;
  app.addHook("preClose", async () => {
    isClosing = true;
    for (const stream of open) stream.end();
  });
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/alerts/stream",
    {
      exposeHeadRoute: false,
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Alerts"],
        summary: "Follow the alerts as a stream",
        description:
          "The answer is a stream of Server-Sent Events. Every transition is an event `alert`; the ids rise in commit order and are the same on all replicas. An event `reset` means that the client missed more events than are replayed, or that the id is unknown. Comments keep the connection alive.",
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
      const stream = await openAlertStream(deps, reply, {
        caller,
        readCallerAgain: () => request.readCallerAgain(),
        zone,
        lastId,
      });
      if (reply.raw.destroyed) return reply;
      // The client came again, on a connection that was still open.
      if (isClosing) stream.end();
      open.add(stream);
      reply.raw.once("close", () => open.delete(stream));
      return reply;
    },
  );
}

function tooMany(open: number): Refusal {
  return new Refusal(429, {
    slug: "too-many-streams",
    detail: `This key already has ${open} open streams on this process, which is the maximum. Close one of them first.`,
    headers: { "retry-after": "30" },
  });
}
