import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from "fastify";
import type { Log } from "../log.ts";
import type { Backlog, Metrics } from "./metrics.ts";
import { PROBLEM_TYPE, problemOf } from "./problem.ts";
import { createReadiness, type HealthCheck } from "./readiness.ts";
import { addLivez } from "./routes/livez.ts";
import { addMetrics } from "./routes/metrics.ts";
import { addReadyz } from "./routes/readyz.ts";
import { SECURITY_HEADERS } from "./security-headers.ts";

export interface HttpOptions {
  readonly checks: readonly HealthCheck[];
  readonly metrics: Metrics;
  /** One query or two, on every scrape. */
  readonly readBacklog: () => Promise<Backlog>;
  readonly log: Log;
  /** Of a request. Default 256 KiB. */
  readonly bodyLimitBytes?: number;
  /** To receive a whole request. Default 30 s. */
  readonly requestTimeoutMs?: number;
  /** To answer one. Default 30 s. */
  readonly handlerTimeoutMs?: number;
  /** For one health check, and for the backlog. Default 2 s. */
  readonly checkTimeoutMs?: number;
}

/** The server, not listening yet. `close` lets requests in flight end. */
export function createHttp(options: HttpOptions): FastifyInstance {
  const requestTimeout = options.requestTimeoutMs ?? 30_000;
  const timeoutMs = options.checkTimeoutMs ?? 2_000;
  const app = Fastify({
    bodyLimit: options.bodyLimitBytes ?? 262_144,
    requestTimeout,
    handlerTimeout: options.handlerTimeoutMs ?? 30_000,
    // Node looks for late requests only every 30 s by itself.
    http: { requestTimeout, connectionsCheckingInterval: Math.min(requestTimeout, 5_000) },
    return503OnClosing: false,
    genReqId: () => randomUUID(),
    frameworkErrors: (error, request, reply) => void sendProblem(reply, request.id, error),
    clientErrorHandler: refuseConnection,
  });
  const onError = (check: string, error: Error) => options.log.warn({ check, error }, "health check failed");

  app.addHook("onRequest", async (request, reply) => {
    void reply.headers(SECURITY_HEADERS).header("x-request-id", request.id);
  });
  app.setNotFoundHandler((request, reply) => sendProblem(reply, request.id, { statusCode: 404 }));
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if ((error.statusCode ?? 500) >= 500) {
      const route = request.routeOptions.url;
      options.log.error({ error, route, method: request.method, requestId: request.id }, "request failed");
    }
    return sendProblem(reply, request.id, error);
  });

  const readReadiness = createReadiness({ checks: options.checks, timeoutMs, onError });
  addLivez(app);
  addReadyz(app, readReadiness);
  addMetrics(app, { metrics: options.metrics, readBacklog: options.readBacklog, timeoutMs, onError });
  return app;
}

/** Only what the framework says about the request itself is repeated; any other text may hold SQL or addresses. */
function sendProblem(
  reply: FastifyReply,
  requestId: string,
  error: { statusCode?: number | undefined; code?: string; message?: string },
): FastifyReply {
  const claimed = error.statusCode ?? 500;
  const status = claimed >= 400 && claimed <= 599 ? claimed : 500;
  const isAboutRequest = status < 500 && error.code?.startsWith("FST_ERR_") === true;
  const detail = isAboutRequest && error.message !== undefined ? { detail: error.message } : {};
  return reply
    .code(status)
    .headers(SECURITY_HEADERS)
    .type(PROBLEM_TYPE)
    .serializer(JSON.stringify)
    .send(problemOf(status, { ...detail, requestId }));
}

const CLIENT_ERRORS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** What never became a request is answered on the bare socket. */
function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = problemOf(CLIENT_ERRORS[error.code ?? ""] ?? 400);
  const body = JSON.stringify(problem);
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": PROBLEM_TYPE,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join("")}\r\n${body}`);
}
