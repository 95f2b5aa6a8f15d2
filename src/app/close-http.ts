import type { FastifyInstance } from "fastify";

/** Grace period for requests in progress when the service stops. */
const ANSWER_GRACE_MS = 2_000;

/**
 * Accepts no more requests and waits for those in progress until the grace period ends. Then it cuts their connections,
 * which also makes Postgres cancel their queries. A search may take longer than a stop should.
 */
export async function closeHttp(http: FastifyInstance, graceMs = ANSWER_GRACE_MS): Promise<void> {
  const cut = setTimeout(() => http.server.closeAllConnections(), graceMs);
  try {
    await http.close();
  } finally {
    clearTimeout(cut);
  }
}
