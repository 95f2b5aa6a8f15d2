import { openRequestGate } from "#app/open-request-gate.ts";
import { type Config, requireEdge } from "#config/config.ts";
import type { Secret } from "#lib/secret.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";

/**
 * Runs `fn` with a client of the configured platform. The client shares the request budget of the service with a low
 * priority: a command may wait, but hours that expire may not.
 */
export async function withEdge<T>(
  config: Config,
  databaseUrl: Secret,
  fn: (edge: EdgeClient) => Promise<T>,
): Promise<T> {
  const connection = requireEdge(config);
  const budget = openRequestGate({ databaseUrl, requestsPerSecond: config.edge.requestsPerSecond });
  const transport = createEdgeTransport({ ...connection, gate: budget.gate });
  try {
    return await fn(createEdgeClient(transport, "low"));
  } finally {
    await transport.close();
    await budget.close();
  }
}
