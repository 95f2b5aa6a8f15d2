import { escapeText } from "#lib/escape-text.ts";
import { FullDiskError } from "#lib/full-disk.ts";
import { asCalled } from "#lib/own-command.ts";
import { readSqlState } from "#lib/sql-state.ts";
import { TlsFailureError } from "#lib/tls-failure-error.ts";
import { EmbeddedPostgresError } from "./postgres-error.ts";

const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
]);

/** The next step for each SQLSTATE of a failed connection. */
const REMEDIES: Record<string, string> = {
  "28P01": "check user name and password in DATABASE_URL",
  "28000": "check user name and password in DATABASE_URL, and pg_hba.conf",
  "3D000": "create the database, or correct DATABASE_URL",
  "42501": "grant the right to the role of DATABASE_URL (docs/database-roles.sql)",
  "53100": "the disk of the Postgres server is full: free space on it or enlarge it",
  "53300": "raise max_connections, or run fewer replicas",
  "57P03": "try again in a moment",
};
const MISSING = new Set(["42P01", "42703"]);

/** Returns one line about a failure of the database with the next step, or null for any other failure. */
export function describePostgresFailure(thrown: unknown): string | null {
  // These errors already name the next step.
  if (thrown instanceof TlsFailureError || thrown instanceof EmbeddedPostgresError) return null;
  if (thrown instanceof FullDiskError) return escapeText(thrown.message);
  for (const error of eachCause(thrown)) {
    const { code, syscall, address, hostname, port } = error as NodeJS.ErrnoException & {
      address?: string;
      hostname?: string;
      port?: number;
    };
    // A missing file or program has the same code as a missing socket.
    if (code === undefined || !UNREACHABLE.has(code) || (code === "ENOENT" && syscall !== "connect"))
      continue;
    const host = address ?? hostname;
    const place =
      host === undefined ? "" : ` at ${escapeText(port === undefined ? host : `${host}:${port}`)}`;
    return `Postgres${place} cannot be reached (${code}): check that it runs and that DATABASE_URL is correct`;
  }
  const state = readSqlState(thrown);
  if (state === null) return null;
  if (MISSING.has(state))
    return asCalled(
      "the database lacks the tables of this version: run npm run -s longwatch -- migrate with its DATABASE_URL, or start the service once (npm start)",
    );
  const remedy = REMEDIES[state];
  const last = eachCause(thrown).at(-1)?.message ?? "";
  return remedy === undefined ? null : `Postgres: ${escapeText(last)} (${state}): ${remedy}`;
}

/** Returns the error and its causes, the outermost first. A host with several addresses has one error for each. */
function eachCause(thrown: unknown): Error[] {
  if (!(thrown instanceof Error)) return [];
  const several = thrown instanceof AggregateError ? (thrown.errors as unknown[]) : [];
  return [thrown, ...several.flatMap(eachCause), ...eachCause(thrown.cause)];
}
