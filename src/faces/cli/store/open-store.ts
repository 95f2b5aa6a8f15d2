import { hasCluster } from "#adapters/embedded/place-cluster.ts";
import { startEmbeddedPostgres } from "#adapters/embedded/postgres.ts";
import { describePostgresFailure, EmbeddedPostgresError } from "#adapters/embedded/postgres-error.ts";
import { readRuntimeFile } from "#app/runtime-file.ts";
import type { Config } from "#config/config.ts";
import { createDatabase, type Database } from "#db/client.ts";
import { COMMAND_SESSIONS } from "#db/postgres/server.ts";
import { explainTlsFailure } from "#lib/http.ts";
import { startHint } from "#lib/process.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { describeOutage } from "../start/describe-outage.ts";

/**
 * Runs `fn` on the service's database: the configured database, the database of the running service, or the embedded
 * database of a stopped service, which is started while `fn` runs. Creates an embedded database only if `mayCreate` is set.
 * @throws {Error} when there is no database.
 */
export async function withStore<T>(
  config: Config,
  fn: (database: Database, databaseUrl: Secret) => Promise<T>,
  { mayCreate = false } = {},
): Promise<T> {
  const known = findStoreUrl(config);
  if (known === undefined && !mayCreate && !hasCluster(config.dataDir))
    throw new Error(
      `there is no database in ${config.dataDir}: ${startHint()} first, or set DATABASE_URL or LONGWATCH_DATA_DIR to the values of the service`,
    );
  const postgres = known === undefined ? await startEmbeddedPostgres({ dataDir: config.dataDir }) : null;
  const url = known ?? postgres?.url ?? "";
  const database = createDatabase({
    url,
    max: 2,
    applicationName: COMMAND_SESSIONS,
    onError: () => undefined,
  });
  try {
    return await fn(database, createSecret(url));
  } catch (thrown) {
    const isDown = config.databaseUrl === null && describePostgresFailure(thrown) !== null;
    const outage = isDown ? describeOutage(config.dataDir) : null;
    if (outage !== null) throw new EmbeddedPostgresError(outage, [], { cause: thrown });
    throw explainTlsFailure(thrown, "Postgres");
  } finally {
    await database.close();
    await postgres?.stop();
  }
}

/** Returns the URL of the configured database or of the running service's database, else undefined. */
export function findStoreUrl({ databaseUrl, dataDir }: Config): string | undefined {
  return databaseUrl?.reveal() ?? readRuntimeFile(dataDir)?.databaseUrl;
}
