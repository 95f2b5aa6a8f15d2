import { openAccounts } from "#app/open-accounts.ts";
import { type Config, requireAccounts } from "#config/config.ts";
import type { Secret } from "#lib/secret.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";

/**
 * Runs `fn` with a client of the configured accounts. The client shares their request budgets with the service with a low
 * priority: a command may wait, but hours that expire may not.
 */
export async function withEdge<T>(
  config: Config,
  databaseUrl: Secret,
  fn: (edge: EdgeClient) => Promise<T>,
): Promise<T> {
  const transport = openAccounts({ databaseUrl, accounts: requireAccounts(config) });
  try {
    return await fn(createEdgeClient(transport, "low"));
  } finally {
    await transport.close();
  }
}
