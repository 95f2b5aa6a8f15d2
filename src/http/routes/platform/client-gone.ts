import type { FastifyReply } from "fastify";

/**
 * Aborts when the client leaves before the answer has gone out. Not the framework's own signal: that one also aborts when
 * a request's body was read to its end.
 */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.destroyed) gone.abort();
  raw.once("close", () => {
    if (!raw.writableFinished) gone.abort();
  });
  return gone.signal;
}
