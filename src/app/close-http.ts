import type { FastifyInstance } from "fastify";

/** For requests that are being answered when the service stops. */
const ANSWER_GRACE_MS = 2_000;

/**
 * Takes no more requests and waits for those under way, but not longer than the grace: then they are cut off, which also
 * has Postgres stop what it does for them. A search may take longer than a stop should.
 */
export async function closeHttp(http: FastifyInstance, graceMs = ANSWER_GRACE_MS): Promise<void> {
  const cut = setTimeout(() => http.server.closeAllConnections(), graceMs);
  try {
    await http.close();
  } finally {
    clearTimeout(cut);
  }
}
