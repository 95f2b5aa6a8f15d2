/** Why the embedded Postgres does not start, and what to do about it. */

import { existsSync } from "node:fs";
import path from "node:path";
import { describeDisk, FullDiskError, formatBytes, readDiskSpace } from "#lib/disk.ts";
import { readSqlState } from "#lib/errors.ts";
import { TlsFailureError } from "#lib/http.ts";
import { asCalled } from "#lib/process.ts";
import { escapeText } from "#lib/text.ts";
import { findCluster } from "./place-cluster.ts";

/** The embedded Postgres did not start. Its message is written for the operator and holds the server's last error lines. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
  readonly code = "EMBEDDED_POSTGRES";
  /** The server's last error lines, oldest first. */
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[], options?: ErrorOptions) {
    super(message, options);
    this.lines = lines;
  }
}

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
  "57P01": "try again in a moment",
  "57P03": "try again in a moment",
};
/** The driver's messages about a lost connection. */
const LOST = /^(Connection terminated|no answer within|timeout exceeded when trying to connect)/;
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
  if (state === null) {
    const lost = eachCause(thrown).find(({ message }) => LOST.test(message));
    return lost === undefined ? null : `Postgres: ${escapeText(lost.message)}: check that it runs`;
  }
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

/** A new cluster takes 47 MB, the tables 15 MB, and Postgres keeps up to 80 MB of its log for later. */
const FIRST_START_BYTES = 200_000_000;
/** Two log files (WAL) of Postgres and space for the rows of the first minutes. */
const LATER_START_BYTES = 50_000_000;

/**
 * Refuses to create a cluster without enough disk space. An existing cluster is not refused: it may need less than the
 * estimate.
 * @throws {FullDiskError}
 */
export function requireSpace(dataDir: string): void {
  if (hasCluster(dataDir)) return;
  const space = readDiskSpace(findCluster(dataDir));
  if (space !== null && space.freeBytes < FIRST_START_BYTES) throw fullDiskOf(dataDir);
}

/** Returns the error of a data folder whose disk is full: disk, folder and the space that a start needs. */
export function fullDiskOf(dataDir: string, cause?: unknown): FullDiskError {
  const needed = formatBytes(hasCluster(dataDir) ? LATER_START_BYTES : FIRST_START_BYTES);
  // As root, the cluster may be on another disk than the data folder. The message names the fuller disk.
  const spaces = [findCluster(dataDir), dataDir].flatMap((folder) => readDiskSpace(folder) ?? []);
  const space = spaces.toSorted((one, other) => one.freeBytes - other.freeBytes)[0] ?? null;
  const facts = space === null ? `the disk of ${dataDir} has no space left` : describeDisk(space);
  return new FullDiskError(
    `Not enough disk space for the embedded Postgres: ${facts}. It needs at least ${needed} there to start, and more for events. ` +
      "Free space or enlarge the disk, or set LONGWATCH_DATA_DIR to a folder on another disk.",
    { cause },
  );
}

function hasCluster(dataDir: string): boolean {
  return existsSync(path.join(findCluster(dataDir), "PG_VERSION"));
}
