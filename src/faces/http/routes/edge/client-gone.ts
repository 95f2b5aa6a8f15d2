import type { FastifyReply } from "fastify";
import { Refusal } from "#operations/refusal.ts";

/** No client reads this status; proxies write it into their logs. */
const CLIENT_GONE = 499;

/**
 * Returns a signal that aborts if the client leaves before the answer is sent. The framework's own signal also aborts
 * when a request's body was read to its end.
 */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(new Refusal(CLIENT_GONE, { detail: "The client closed the connection." }));
  if (raw.destroyed) leave();
  raw.once("close", leave);
  return gone.signal;
}
