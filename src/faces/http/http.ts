import { randomUUID } from "node:crypto";
import Fastify, { type FastifyError, type FastifyInstance } from "fastify";
import { serializerCompiler } from "fastify-type-provider-zod";
import { readVersion } from "#config/read-version.ts";
import { type Clock, systemClock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import { type ActionWords, BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { Authenticate } from "#operations/caller.ts";
import type { Backlog } from "./backlog.ts";
import { addCompression } from "./compress.ts";
import { answerUnknown, MAX_PARAM_CHARS, sendProblem, toShownError } from "./errors/send-problem.ts";
import { createFailedKeys } from "./keys/authenticate.ts";
import { addGuard, addPermissions, type GuardParts } from "./keys/guard.ts";
import type { People, Sessions } from "./keys/sessions.ts";
import {
  type ConnectionLimits,
  type Connections,
  createConnections,
  refuseConnection,
} from "./limits/limit-connections.ts";
import {
  createSecurityEvents,
  limitAddresses,
  limitKeys,
  type RequestLimits,
  type SecurityEventsOptions,
} from "./limits/limit-requests.ts";
import { createIsOwnHost } from "./limits/origin.ts";
import {
  addConcurrencyLimit,
  type ConcurrencyLimits,
  refuseDeepBody,
  refuseEncodedBody,
  refuseTwoHosts,
} from "./limits/refuse.ts";
import { addMetrics, type Metrics } from "./metrics.ts";
import { type AnswerPage, addConsole, SECURITY_HEADERS, TLS_HEADERS } from "./page/add-console.ts";
import { addLivez, addReadyz, createReadiness, type HealthCheck } from "./readiness.ts";
import { addOpenApi, addRedirectToDocs } from "./routes/openapi.ts";
import { readNativeJson, validatorCompiler } from "./routes/read-body.ts";
import { addSession } from "./routes/session.ts";

export interface HttpOptions {
  readonly checks: readonly HealthCheck[];
  readonly metrics: Metrics;
  /** Runs one or two queries at every scrape. */
  readonly readBacklog: () => Promise<Backlog>;
  readonly log: Log;
  readonly authenticate: Authenticate;
  /** Hashes of keys in recent use, newest first. Wrong keys of other clients do not delay these keys. */
  readonly knownKeys?: readonly Buffer[];
  /** Sign-in to the console. Default: nobody can sign in. */
  readonly sessions?: Sessions;
  /** Sign-in of people at an issuer. Needed with `sessions`. */
  readonly people?: People;
  /** Folder of the built console. Default: no console is served, and `/` redirects to the documentation. */
  readonly consoleFolder?: string;
  /** The address that people use. Default: unknown. */
  readonly publicUrl?: string | null;
  /** The configuration's own words of actions. Default: none. */
  readonly actions?: ActionWords;
  /** Further host names of this service. IP addresses and names that nobody can register need no entry. */
  readonly ownHosts?: readonly string[];
  /** Each function adds routes and declares their access. A route without access makes this throw. */
  readonly routes: readonly ((app: FastifyInstance) => void)[];
  readonly limits: RequestLimits & ConcurrencyLimits;
  /** Addresses or networks of the proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[];
  /** Called rarely enough to write each event into a table. */
  readonly writeSecurityEvent: SecurityEventsOptions["write"];
  /** Clock of the limits. Default: the system's clock. */
  readonly clock?: Clock;
  /** True if /metrics needs no key. */
  readonly areMetricsPublic: boolean;
  /** Maximum size of a request's body. Default 256 KiB. */
  readonly bodyLimitBytes?: number;
  /** Default: limits for a process with 1,000 connections. */
  readonly connectionLimits?: ConnectionLimits;
  /** Time limit for receiving a whole request. Default 30 s. */
  readonly requestTimeoutMs?: number;
  /** Time limit for receiving and answering a request. Default 40 s, longer than that for receiving. */
  readonly handlerTimeoutMs?: number;
  /** Time limit of each health check and of the backlog. Default 2 s. */
  readonly checkTimeoutMs?: number;
}

/** Creates the server, which does not listen yet. `close` lets requests in progress end. */
export async function createHttp(options: HttpOptions): Promise<FastifyInstance> {
  const requestTimeout = options.requestTimeoutMs ?? 30_000;
  const timeoutMs = options.checkTimeoutMs ?? 2_000;
  const connections = createConnections(options.trustedProxies, options.connectionLimits);
  const app = Fastify({
    trustProxy: options.trustedProxies.length > 0 && [...options.trustedProxies],
    bodyLimit: options.bodyLimitBytes ?? 262_144,
    requestTimeout,
    handlerTimeout: options.handlerTimeoutMs ?? 40_000,
    serverFactory: (handler) => connections.createServer(handler, { requestTimeoutMs: requestTimeout }),
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    frameworkErrors: (error, request, reply) => void sendProblem(reply, request.id, error),
    clientErrorHandler: refuseConnection,
  });
  const onError = (check: string, error: Error) => options.log.warn({ check, error }, "health check failed");

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  const publicHost = URL.parse(options.publicUrl ?? "")?.hostname;
  const isOwnHost = createIsOwnHost([
    ...(options.ownHosts ?? []),
    ...(publicHost === undefined ? [] : [publicHost]),
  ]);
  app.addHook("onRequest", async (request, reply) => {
    void reply.headers(SECURITY_HEADERS).header("x-request-id", request.id);
    // The browser came through TLS, by a trusted proxy.
    if (request.protocol === "https") void reply.headers(TLS_HEADERS);
    refuseTwoHosts(request.raw);
  });
  const guarding = protect(app, options, connections, isOwnHost);
  app.addHook("onResponse", async ({ method, routeOptions }, reply) => {
    const route = routeOptions.url === undefined ? "none" : `${method} ${routeOptions.url}`;
    options.metrics.requestEnded({ route, status: reply.statusCode, durationMs: reply.elapsedTime });
  });
  app.addHook("preParsing", async (request) => refuseEncodedBody(request));
  app.addHook("preValidation", async (request) => refuseDeepBody(request.body));
  readNativeJson(app);
  let answerPage: AnswerPage = () => null;
  answerUnknown(app, (request, reply) => answerPage(request, reply));
  let isClosing = false;
  app.addHook("preClose", async () => {
    isClosing = true;
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const shown = toShownError(error);
    // A stop cuts the requests that outlast its grace period. Their next query finds a closed pool.
    const isCut = isClosing && request.raw.socket.destroyed;
    if ((shown.statusCode ?? 500) >= 500 && !isCut) {
      const route = request.routeOptions.url;
      options.log.error({ error, route, method: request.method, requestId: request.id }, "request failed");
    }
    return sendProblem(reply, request.id, shown);
  });

  await addOpenApi(app);
  if (options.consoleFolder === undefined) addRedirectToDocs(app);
  else answerPage = await addConsole(app, options.consoleFolder);
  const readReadiness = createReadiness({ checks: options.checks, timeoutMs, onError });
  addLivez(app);
  addReadyz(app, readReadiness);
  const { metrics, readBacklog, areMetricsPublic: isPublic } = options;
  addMetrics(app, { metrics, readBacklog, isPublic, timeoutMs, onError });
  const { sessions, people, authenticate, publicUrl = null, actions = BUILT_IN_ACTIONS.own } = options;
  if (sessions !== undefined && people !== undefined) {
    const shown = { publicUrl, actions, version: readVersion() };
    addSession(app, { ...guarding, ...shown, sessions, people, authenticate });
  }
  for (const addRoutes of options.routes) addRoutes(app);
  addCompression(app);
  return app;
}

/** Adds the checks. The order matters: the cheapest refusal comes first. */
function protect(
  app: FastifyInstance,
  options: HttpOptions,
  connections: Connections,
  isOwnHost: GuardParts["isOwnHost"],
) {
  const clock = options.clock ?? systemClock;
  const note = createSecurityEvents({
    write: options.writeSecurityEvent,
    onError: (thrown) => options.log.warn({ error: toError(thrown) }, "security event not written"),
  });
  const limits = { limits: options.limits, clock, note };
  limitAddresses(app, limits);
  const { authenticate, sessions = null } = options;
  const failed = createFailedKeys(options.knownKeys);
  addGuard(app, { authenticate, clock, note, failed, sessions, isOwnHost });
  app.addHook("onRequest", async ({ raw, caller }, reply) => {
    if (connections.noteRequest(raw.socket, caller !== null)) void reply.header("connection", "close");
  });
  limitKeys(app, limits);
  addPermissions(app, { clock, note });
  addConcurrencyLimit(app, options.limits);
  return { clock, note, failed };
}
