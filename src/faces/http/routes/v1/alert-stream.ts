/** The alerts as a stream of events. */
import type { FastifyInstance, FastifyReply } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { type FeedRow, readFeed, readFeedEnd } from "#db/alerts/feed-transitions.ts";
import type { Queryable } from "#db/client.ts";
import type { Caller } from "#operations/caller.ts";
import { known, maySee, visibleZones, ZoneId } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { type RowHub, toFeedEvent } from "../../feed/feed.ts";

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

/** Most transitions that are replayed. A client that missed more gets a `reset` and reads the list. */
const MAX_REPLAY = 1_000;
/** Transitions that may wait for a client before it is cut off; it comes again and replays. */
const MAX_QUEUED = 5_000;
/** Written before the connection is asked whether it has room for more. */
const WRITTEN_AT_ONCE = 50;
const HEARTBEAT_MS = 15_000;

/** The source of the stream and of the feed. */
export interface FeedDeps {
  readonly db: Queryable;
  readonly hub: RowHub<FeedRow>;
  /** Time between two heartbeats of a stream without events. Default 15 s. */
  readonly heartbeatMs?: number;
  /** The most streams of one key in one process at the same time. Default 5. */
  readonly streamsPerKey?: number;
}

interface AlertStream {
  readonly end: () => void;
}

interface AlertStreamOptions {
  readonly caller: Caller;
  readonly zone: number | undefined;
  readonly readCallerAgain: () => Promise<Caller | null>;
  readonly lastId: number | null;
}

/**
 * Opens the stream. Transitions go through a queue, which the client empties as fast as it reads.
 * @throws before anything is sent; later trouble ends the connection, and the client comes again with its last id.
 */
async function openAlertStream(
  deps: FeedDeps,
  reply: FastifyReply,
  options: AlertStreamOptions,
): Promise<AlertStream> {
  const { db, hub, heartbeatMs = HEARTBEAT_MS } = deps;
  const { zone, readCallerAgain, lastId } = options;
  const { raw } = reply;
  // A connection that breaks is an everyday thing; `close` follows.
  raw.on("error", () => undefined);
  let { caller } = options;
  let queue: FeedRow[] = [];
  let sent = 0;
  let isPumping = true;

  const { position, leave } = await hub.join((rows) => {
    queue.push(...rows);
    if (queue.length > MAX_QUEUED) raw.destroy();
    else if (!isPumping) void pump();
  });
  try {
    // A client that comes from another replica may know more than this one has read by now.
    const newest = lastId !== null && lastId > position ? await readFeedEnd(db) : position;
    const isKnown = lastId !== null && lastId <= newest;
    const zoneIds = visibleZones(caller, zone);
    const missed = isKnown
      ? await readFeed(db, { after: lastId, through: position, zoneIds, limit: MAX_REPLAY + 1 })
      : [];
    begin(reply);
    write(raw, SSE_OPENING);
    const isReplayed = isKnown && missed.length <= MAX_REPLAY;
    sent = isReplayed ? lastId : position;
    if (isReplayed) queue = [...missed, ...queue.filter(({ sequence }) => sequence > position)];
    else if (lastId !== null)
      write(raw, toSseEvent({ id: position, name: "reset", data: toReset(isKnown, position) }));
  } catch (thrown) {
    leave();
    throw thrown;
  }
  const heart = setInterval(() => void beat(), heartbeatMs);
  const stop = () => {
    clearInterval(heart);
    leave();
  };
  if (raw.destroyed) stop();
  else raw.once("close", stop);
  let wasFull = false;
  void pump().then(() => {
    sent = Math.max(sent, position);
  });
  return { end: () => raw.end() };

  async function pump(): Promise<void> {
    isPumping = true;
    while (queue.length > 0 && !raw.destroyed) {
      for (const row of queue.splice(0, WRITTEN_AT_ONCE)) send(row);
      await room(raw);
    }
    isPumping = false;
  }

  function send(row: FeedRow): void {
    if (row.sequence <= sent) return;
    sent = row.sequence;
    if (!maySee(caller, row.zoneId) || (zone !== undefined && zone !== row.zoneId)) return;
    write(raw, toSseEvent({ id: row.sequence, name: "alert", data: toFeedEvent(row, caller.masked) }));
  }

  /** Ends the stream of a revoked key, and cuts off a client that reads nothing. A key that lost a zone gets no more of it. */
  async function beat(): Promise<void> {
    if (wasFull && raw.writableNeedDrain) return void raw.destroy();
    wasFull = raw.writableNeedDrain;
    try {
      const now = await readCallerAgain();
      if (now === null || !now.scopes.has("read")) return void raw.end();
      caller = now;
    } catch {
      // The client had a valid key. While the key cannot be looked up, the client stays.
    }
    write(raw, toSseHeartbeat(sent));
  }
}

function toReset(isKnown: boolean, newest: number): object {
  const detail = isKnown
    ? `The client missed more than ${MAX_REPLAY} transitions. Read GET /api/v1/alerts. The stream continues with new transitions.`
    : "This service does not know the id. Read GET /api/v1/alerts. The stream continues with new transitions.";
  return { reason: isKnown ? "too-old" : "unknown-id", newest, detail };
}

function begin(reply: FastifyReply): void {
  reply.hijack();
  const headers = Object.fromEntries(
    Object.entries(reply.getHeaders()).filter((entry): entry is [string, string | number | string[]] => {
      return entry[1] !== undefined;
    }),
  );
  reply.raw.writeHead(200, {
    ...headers,
    "content-type": "text/event-stream; charset=utf-8",
    // Proxies that would collect it first.
    "x-accel-buffering": "no",
  });
}

function write(raw: FastifyReply["raw"], text: string): void {
  if (!raw.destroyed && !raw.writableEnded) raw.write(text);
}

/** Settles when the connection takes more, or is gone. */
async function room(raw: FastifyReply["raw"]): Promise<void> {
  if (raw.destroyed || !raw.writableNeedDrain) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      raw.off("drain", done).off("close", done);
      resolve();
    };
    raw.on("drain", done).on("close", done);
  });
}

/** Time that a client waits before it reconnects. */
const RETRY_MS = 3_000;

/** Returns an event of the stream. JSON has no bare line breaks, so no text can end the field. */
function toSseEvent(event: { id: number; name: string; data: object }): string {
  return `id: ${event.id}\nevent: ${event.name}\ndata: ${JSON.stringify(event.data)}\n\n`;
}

/** Keeps the connection open, and moves the client's last id past transitions that it may not see. */
function toSseHeartbeat(id: number): string {
  return `: heartbeat\nid: ${id}\n\n`;
}

const SSE_OPENING = `retry: ${RETRY_MS}\n: Longwatch alerts\n\n`;
