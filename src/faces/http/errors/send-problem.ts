import type { FastifyReply } from "fastify";
import { readSqlState, UsageError } from "#lib/errors.ts";
import { Refusal } from "#operations/refusal.ts";
import { SECURITY_HEADERS } from "../security-headers.ts";
import { wordError, wordFrameworkError } from "./error-form.ts";
import { type ProblemAbout, problemOf } from "./problem.ts";

/** Postgres cancelled the statement, here because of its time limit. */
const QUERY_CANCELED = "57014";

/** Postgres cannot store a character of the text: NUL. */
const BAD_CHARACTER = "22021";

const NUL_CHARACTER = new Refusal(400, {
  slug: "invalid-request",
  detail: "A text in the request contains a NUL character. Remove the character.",
});

const QUERY_TOO_SLOW = new Refusal(503, {
  slug: "query-too-slow",
  detail:
    "The query took too long and was stopped. Choose a shorter time range, name the zone, or filter by rule or address.",
});

const SEARCH_TOO_LARGE = new Refusal(503, {
  slug: "query-too-large",
  detail:
    "The query needs more memory than a search may have. Choose a shorter time range, fewer dimensions to group by, or filter by rule or address.",
});

const ARCHIVE_TOO_LARGE = new Refusal(503, {
  slug: "query-too-large",
  detail:
    "The query needs more files of the archive at once than the service may keep. Choose a shorter time range, or ask the operator to raise LONGWATCH_ARCHIVE_CACHE_GB.",
});

const SEARCH_LOST = new Refusal(503, {
  slug: "busy",
  detail: "The process that answers searches ended. Try again in a few seconds.",
  headers: { "retry-after": "5" },
});

/** The refusals by the error code of the archive's reader. */
const ARCHIVE_ERRORS: Readonly<Record<string, Refusal>> = {
  DUCKDB_TIMEOUT: QUERY_TOO_SLOW,
  DUCKDB_MEMORY: SEARCH_TOO_LARGE,
  DUCKDB_DIED: SEARCH_LOST,
  ARCHIVE_TOO_LARGE: ARCHIVE_TOO_LARGE,
};

const DATABASE_BUSY = new Refusal(503, {
  slug: "busy",
  detail: "The database is busy with other requests. Try again in a few seconds.",
  headers: { "retry-after": "5" },
});

export interface AnyError {
  readonly statusCode?: number | undefined;
  readonly code?: string;
  readonly message?: string;
  /** The day of the archive file, `yyyy-mm-dd`. */
  readonly day?: string | null;
}

/** Returns the error for the client: a statement that Postgres stopped is the query's fault. */
export function toTold(error: AnyError): AnyError {
  if (error instanceof Refusal) return error;
  if (error instanceof UsageError)
    return new Refusal(400, { slug: "invalid-request", detail: error.message });
  const state = readSqlState(error);
  if (state === QUERY_CANCELED) return QUERY_TOO_SLOW;
  if (state === BAD_CHARACTER) return NUL_CHARACTER;
  if (error.code === "ARCHIVE_DAMAGED") return toDamaged(error);
  if (error.code === "ARCHIVE_UNREACHABLE") return toUnreachable(error);
  const ofArchive = ARCHIVE_ERRORS[error.code ?? ""];
  if (ofArchive !== undefined) return ofArchive;
  return isOutOfConnections(error) ? DATABASE_BUSY : error;
}

function toUnreachable({ day }: AnyError): Refusal {
  return new Refusal(503, {
    slug: "archive-unreachable",
    detail: `The archive's file of ${day ?? "a day"} cannot be fetched from the bucket now. Try again later, or leave that day out of the time range.`,
    headers: { "retry-after": "30" },
  });
}

function toDamaged({ day }: AnyError): Refusal {
  return new Refusal(503, {
    slug: "archive-damaged",
    detail: `The archive's file of ${day ?? "a day"} is missing or damaged. Leave that day out of the time range, or ask the operator to restore the file.`,
  });
}

/** Returns whether the pool had no free connection. The pool's error has a message and no code. */
function isOutOfConnections(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause)
    if (error.message === "timeout exceeded when trying to connect") return true;
  return false;
}

/** Sends the error in the form of the requested route. */
export function sendProblem(reply: FastifyReply, requestId: string, error: AnyError): FastifyReply {
  const claimed = error.statusCode ?? 500;
  const status = claimed >= 400 && claimed <= 599 ? claimed : 500;
  const form = reply.routeOptions?.config.errorForm ?? "native";
  const { type, body } = wordError(form, problemOf(status, { ...aboutOf(status, error, reply), requestId }));
  const headers = error instanceof Refusal ? error.headers : {};
  // If an answer fails before its first byte, its encoding is set already.
  reply.removeHeader("content-encoding");
  return reply
    .code(status)
    .headers({ ...SECURITY_HEADERS, ...headers })
    .type(type)
    .serializer(JSON.stringify)
    .send(body);
}

/** Keeps only texts that are for the client or about the request itself, because others may contain SQL. */
function aboutOf(status: number, error: AnyError, reply: FastifyReply): ProblemAbout {
  if (error instanceof Refusal) return error;
  const isAboutRequest = status < 500 && error.code?.startsWith("FST_ERR_") === true;
  return isAboutRequest ? { detail: wordFrameworkError(error, reply.routeOptions ?? {}) } : {};
}
