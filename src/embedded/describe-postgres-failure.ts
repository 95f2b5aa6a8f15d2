import { escapeText } from "../lib/escape-text.ts";
import { FullDiskError } from "../lib/full-disk.ts";
import { isInstalled } from "../lib/own-command.ts";
import { readSqlState } from "../lib/sql-state.ts";
import { TlsFailureError } from "../lib/tls-failure-error.ts";
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

/** SQLSTATEs of a connection that does not come about, and of tables that are not there, with what helps. */
const REMEDIES: Record<string, string> = {
  "28P01": "check user name and password in DATABASE_URL",
  "28000": "check user name and password in DATABASE_URL, and pg_hba.conf",
  "3D000": "create it, or correct DATABASE_URL",
  "42501": "give the role of DATABASE_URL the right (docs/database-roles.sql)",
  "53100": "the disk of the Postgres server is full: free space there, or enlarge it",
  "53300": "raise max_connections, or run fewer replicas",
  "57P03": "try again in a moment",
};
const MISSING = new Set(["42P01", "42703"]);

/** What is wrong with the database and what helps, in one line; null where the failure is of another kind. */
export function describePostgresFailure(thrown: unknown): string | null {
  // It says itself what to do.
  if (thrown instanceof TlsFailureError || thrown instanceof EmbeddedPostgresError) return null;
  if (thrown instanceof FullDiskError) return escapeText(thrown.message);
  for (const error of eachCause(thrown)) {
    const { code, syscall, address, hostname, port } = error as NodeJS.ErrnoException & {
      address?: string;
      hostname?: string;
      port?: number;
    };
    // A file or a program that is missing has the code of a socket that is.
    if (code === undefined || !UNREACHABLE.has(code) || (code === "ENOENT" && syscall !== "connect"))
      continue;
    const host = address ?? hostname;
    const place =
      host === undefined ? "" : ` at ${escapeText(port === undefined ? host : `${host}:${port}`)}`;
    return `Postgres${place} cannot be reached (${code}): does it run, and is DATABASE_URL right?`;
  }
  const state = readSqlState(thrown);
  if (state === null) return null;
  if (MISSING.has(state))
    return `the database lacks the tables of this version: start the service once${isInstalled() ? "" : " (npm start)"}`;
  const remedy = REMEDIES[state];
  const last = eachCause(thrown).at(-1)?.message ?? "";
  return remedy === undefined ? null : `Postgres: ${escapeText(last)} (${state}): ${remedy}`;
}

/** From the outside in; a host with several addresses fails with one error for each. */
function eachCause(thrown: unknown): Error[] {
  if (!(thrown instanceof Error)) return [];
  const several = thrown instanceof AggregateError ? (thrown.errors as unknown[]) : [];
  return [thrown, ...several.flatMap(eachCause), ...eachCause(thrown.cause)];
}
