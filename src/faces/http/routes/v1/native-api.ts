/** Longwatch's own API: its operations and the export of events. */

import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { narrowZones } from "#archive/rules/query/read-search.ts";
import {
  ABOUT_SEARCH,
  CHOSEN_COLUMNS,
  EXPORT_FORMAT,
  planNative,
  SEARCH_SPAN,
  SEARCH_WINDOW,
} from "#archive/search/searching.ts";
import { known, ZoneIds } from "#operations/fields.ts";
import { OPERATIONS } from "#operations/index.ts";
import { readZones } from "#operations/require-known.ts";
import { addOperations, type OperationParts } from "../../operations.ts";
import { EXPORTED, LONGEST_EXPORT_MS, sendExport } from "../edge/export-event-logs.ts";
import type { PlatformDeps } from "../edge/platform.ts";
import { addAlertStream, type FeedDeps } from "./alert-stream.ts";
import { addAlertsAtom } from "./alerts-atom.ts";

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

const EXAMPLE = {
  ...SEARCH_SPAN,
  filters: [{ field: "path", op: "contains", value: ["/admin"], not: true }],
};

/** `POST /api/v1/zones/{zone}/events/export`: a stream, and so no operation. The search language reads the body. */
export function addExportEvents(app: FastifyInstance, deps: PlatformDeps): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    "/api/v1/zones/:zone/events/export",
    {
      config: { access: { scope: "export", zone: "zone" }, heavy: "export", refuses: [406, 503] },
      handlerTimeout: LONGEST_EXPORT_MS,
      schema: {
        tags: ["Events"],
        summary: "Export events as CSV, NDJSON, Parquet or OCSF",
        description: `${ABOUT_SEARCH} The columns are those of the platform's export unless columns name others; for several zones, which follow each other, the last column is the zone. An export in OCSF has no records.`,
        params: z.object({ zone: ZoneIds }),
        body: z.looseObject({ format: EXPORT_FORMAT, ...CHOSEN_COLUMNS }).meta({
          wire: {
            ...z.toJSONSchema(z.object({ ...SEARCH_WINDOW, format: EXPORT_FORMAT, ...CHOSEN_COLUMNS })),
            examples: [EXAMPLE],
          },
        }),
        response: { 200: EXPORTED },
      },
    },
    async (request, reply) => {
      const { db, clock, service } = deps;
      const { zoneIds, retention } = service;
      const isMasked = request.caller?.masked ?? true;
      const asked = { db, zoneIds, nowMs: clock(), retentionDays: retention.eventDays, isMasked };
      const { format, columns, timeZone, ...body } = request.body;
      const { zone } = request.params;
      const of = await readZones({ db, caller: known(request.caller), service }, zone);
      const found = await planNative(
        { ...asked, zoneIds: zone === "all" ? of : zoneIds },
        { zoneIds: of, body, kind: "export" },
      );
      const wanted = { ...narrowZones(found), isZoned: zone === "all" || zone.length > 1 };
      return sendExport(deps, request, reply, wanted, { format, columns, timeZone });
    },
  );
}
