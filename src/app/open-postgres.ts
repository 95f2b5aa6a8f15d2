import type { Config } from "../config.ts";
import { startEmbeddedPostgres } from "../embedded/postgres.ts";
import { createSecret, type Secret } from "../secret.ts";
import type { StopStack } from "../stop-stack.ts";

/** The configured database, or one that is started here. */
export async function openPostgres(
  { databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">,
  stack: StopStack,
): Promise<Secret> {
  if (databaseUrl !== null) return databaseUrl;
  const postgres = await startEmbeddedPostgres({
    dataDir,
    settings: ["max_wal_size=2GB", "shared_buffers=256MB"],
  });
  stack.defer("embedded Postgres", () => postgres.stop());
  return createSecret(postgres.url);
}
