import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";

/** Starts the database in the given folder, prints its address and stays until it is killed. */
const postgres = await startEmbeddedPostgres({ dataDir: process.argv[2] ?? "" });
process.stdout.write(`${postgres.url}\n`);
setInterval(() => undefined, 60_000);
