/** Answers an error in the form that its route has. */
import type { FastifyInstance, FastifyReply } from "fastify";
import { readSqlState, UsageError } from "#lib/errors.ts";
import { Refusal } from "#operations/refusal.ts";
import { type AnswerPage, SECURITY_HEADERS } from "../page/add-console.ts";
import { PROBLEM_TYPE, type Problem, type ProblemAbout, problemOf } from "./problem.ts";

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

interface AnyError {
  readonly statusCode?: number | undefined;
  readonly code?: string;
  readonly message?: string;
  /** The day of the archive file, `yyyy-mm-dd`. */
  readonly day?: string | null;
}

/** Returns the error for the client: a statement that Postgres stopped is the query's fault. */
export function toShownError(error: AnyError): AnyError {
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

/**
 * The form in which an area of the platform's API reports errors that are not about the body (platform API spec 2.13).
 * `bare`: problem details. `status-code`: the status alone. `message`: the form of the account's operations.
 */
export type ErrorForm = "native" | "bare" | "status-code" | "message";

const JSON_TYPE = "application/json; charset=utf-8";

/** The section of RFC 9110 that defines the status. */
const SECTIONS: Readonly<Record<number, string>> = {
  400: "15.5.1",
  401: "15.5.2",
  403: "15.5.4",
  404: "15.5.5",
  413: "15.5.14",
  415: "15.5.16",
  500: "15.6.1",
  503: "15.6.4",
};

type Wording = (problem: Problem) => { readonly type: string; readonly body: object };

const WORDINGS: Readonly<Record<ErrorForm, Wording>> = {
  native: (problem) => ({ type: PROBLEM_TYPE, body: problem }),
  bare: ({ status, title, detail }) => {
    const type = `https://tools.ietf.org/html/rfc9110#section-${SECTIONS[status] ?? "15"}`;
    // A refused key gets no reason.
    const body = { type, title, status, ...(detail === undefined || status === 401 ? {} : { detail }) };
    return { type: PROBLEM_TYPE, body };
  },
  "status-code": ({ status }) => ({ type: JSON_TYPE, body: { statusCode: status } }),
  message: ({ status, title, detail }) => {
    const denied = "Authorization has been denied for this request.";
    return { type: JSON_TYPE, body: { Message: status === 401 ? denied : (detail ?? title) } };
  },
};

export function wordError(form: ErrorForm, problem: Problem): ReturnType<Wording> {
  return WORDINGS[form](problem);
}

/** Maximum length of a parameter in a path. A page token is longer than any other. */
export const MAX_PARAM_CHARS = 2_048;

/** Adds the broken rule to the framework's error. Keeps the framework's words if they contain the rule. */
function wordFrameworkError(
  { code, message }: { readonly code?: string; readonly message?: string },
  { bodyLimit }: { readonly bodyLimit?: number | undefined },
): string | undefined {
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return `The request body must be at most ${bodyLimit} bytes.`;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return "The request body must be sent as application/json.";
  if (code === "FST_ERR_MAX_PARAM_LENGTH")
    return `No part of the path may have more than ${MAX_PARAM_CHARS} characters.`;
  return message;
}

/**
 * Answers a request that matches no route. The console's page is the answer if the console has that address. Otherwise
 * the answer is 404 for an unknown address or a missing file, 405 for a method that the address does not accept, and
 * the accepted methods for OPTIONS. Call this before the routes are added. The accepted methods are no secret: the
 * public document lists them.
 */
export function answerUnknown(app: FastifyInstance, answerPage: AnswerPage): void {
  const allowedAt = learnMethods(app);
  app.setNotFoundHandler((request, reply) => {
    const methods = allowedAt(request.url.split("?", 1)[0] ?? "");
    if (methods.length === 0)
      return answerPage(request, reply) ?? sendProblem(reply, request.id, { statusCode: 404 });
    const allow = methods.join(", ");
    if (request.method === "OPTIONS") return reply.code(204).header("allow", allow).send();
    // The route is there and its file is not: the console was built again while the service ran.
    if (methods.includes(request.method)) return sendProblem(reply, request.id, { statusCode: 404 });
    const detail = `This path does not accept ${request.method}. It accepts ${allow}.`;
    return sendProblem(reply, request.id, new Refusal(405, { detail, headers: { allow } }));
  });
}

/** Returns the methods of an address; an empty list if no route has the address. */
type AllowedMethods = (path: string) => readonly string[];

/** Collects every route that is added later. Called only for unmatched requests, so it may go through all routes. */
function learnMethods(app: FastifyInstance): AllowedMethods {
  const routes: { readonly methods: readonly string[]; readonly url: string }[] = [];
  app.addHook("onRoute", ({ method, url }) => void routes.push({ methods: [method].flat(), url }));
  let patterns: readonly RegExp[] | undefined;
  return (path) => {
    // Compiled for the first unmatched request: no route is added any more.
    patterns ??= routes.map(({ url }) => toPattern(url));
    const found = patterns.flatMap((pattern, index) =>
      pattern.test(path) ? (routes[index]?.methods ?? []) : [],
    );
    return found.length === 0 ? [] : [...new Set([...found, "OPTIONS"])].sort();
  };
}

/** A parameter matches any one segment. */
function toPattern(url: string): RegExp {
  const segments = url
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${segments.join("/")}$`);
}
