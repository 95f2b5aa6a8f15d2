import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { OPERATIONS } from "#operations/index.ts";
import { addOperations, type OperationParts } from "../../operations.ts";
import { addAlertStream } from "./alert-stream.ts";
import { addAlertsAtom } from "./alerts-atom.ts";
import type { FeedDeps } from "./open-alert-stream.ts";

/** The native API: alerts, silences, trends, rules, spikes, coverage, gaps, deliveries, zones, status. */
export function addNativeApi(app: FastifyInstance, parts: OperationParts, feed: FeedDeps): void {
  app.addHook("onSend", async (request, reply, payload) =>
    request.routeOptions.url?.startsWith("/api/v1/") === true ? addEtag(request, reply, payload) : payload,
  );
  addOperations(app, OPERATIONS, parts);
  addAlertStream(app, feed);
  addAlertsAtom(app, parts);
}

/**
 * Adds an ETag to an answer, and answers 304 to a client that has the same answer, so that a poll without changes costs
 * no body.
 */
async function addEtag(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  if (!["GET", "HEAD"].includes(request.method) || reply.statusCode !== 200 || typeof payload !== "string")
    return payload;
  const etag = `W/"${createHash("sha256").update(payload).digest("base64url").slice(0, 22)}"`;
  void reply.header("etag", etag);
  const given = request.headers["if-none-match"];
  const isKnown = given !== undefined && given.split(",").some((one) => isSame(one.trim(), etag));
  if (!isKnown) return payload;
  void reply.code(304).removeHeader("content-length").removeHeader("content-type");
  return "";
}

/** Compares weakly, as RFC 9110 requires here: proxies add and remove the mark of weakness. */
function isSame(given: string, etag: string): boolean {
  return given === "*" || given.replace(/^W\//, "") === etag.replace(/^W\//, "");
}
