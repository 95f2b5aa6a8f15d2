import type { Config } from "../config.ts";
import { requireEdge } from "../config.ts";
import { createEdgeClient, type EdgeClient } from "../edge/edge-client.ts";
import { createEdgeTransport } from "../edge/transport.ts";

/** Runs `fn` with a client of the configured platform. */
export async function withEdge<T>(config: Config, fn: (edge: EdgeClient) => Promise<T>): Promise<T> {
  const transport = createEdgeTransport(requireEdge(config));
  try {
    return await fn(createEdgeClient(transport));
  } finally {
    await transport.close();
  }
}
