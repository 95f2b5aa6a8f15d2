import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { ZoneId } from "#operations/fields.ts";
import {
  ABOUT_SEARCH,
  EXPORT_FORMAT,
  planNative,
  SEARCH_SPAN,
  SEARCH_WINDOW,
} from "#operations/search/native-search.ts";
import { EXPORTED, LONGEST_EXPORT_MS, sendExport } from "../edge/export-event-logs.ts";
import type { PlatformDeps } from "../edge/platform-deps.ts";

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
        description: `${ABOUT_SEARCH} The columns are those of the platform's export. An export in OCSF has no records.`,
        params: z.object({ zone: ZoneId }),
        body: z.looseObject({ format: EXPORT_FORMAT }).meta({
          wire: {
            ...z.toJSONSchema(z.object({ ...SEARCH_WINDOW, format: EXPORT_FORMAT })),
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
      const { format, ...body } = request.body;
      const wanted = { zoneId: request.params.zone, body, kind: "export" } as const;
      return sendExport(deps, request, reply, await planNative(asked, wanted), format);
    },
  );
}
