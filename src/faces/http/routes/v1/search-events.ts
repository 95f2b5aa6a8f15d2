import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { FIELD_NAMES } from "#model/fields.ts";
import { OPERATORS } from "#model/kinds.ts";
import { ZoneId } from "#operations/fields.ts";
import { type Mistake, Refusal } from "#operations/refusal.ts";
import { toNativeRow } from "#stages/archive/records/to-native-row.ts";
import { EXPORTED, LONGEST_EXPORT_MS, sendExport } from "../edge/export-event-logs.ts";
import { sendJson } from "../edge/platform-answer.ts";
import type { PlatformDeps } from "../edge/platform-deps.ts";
import { SEARCH_LIMITS, SEARCH_SPAN } from "../edge/platform-schemas.ts";
import { planBody, type SearchRequest } from "../edge/read-search-request.ts";
import { isServedZone } from "../edge/read-zone.ts";
import { answerSearch } from "../edge/search-event-logs.ts";

const FieldName = z
  .enum(FIELD_NAMES)
  .describe("The platform's names (ruleId, ip, asn, ua) are accepted, too.");
const WINDOW = {
  from: z.int().describe("Epoch ms."),
  to: z.int().describe("Epoch ms, after `from`. Events at `to` are not found."),
  query: z.string().nullish().describe("Text in address, rule, URL, user agent or message."),
  filters: z
    .array(
      z.object({
        field: FieldName,
        op: z.enum(OPERATORS),
        value: z.array(z.string()).describe("One of the values must match."),
        not: z
          .boolean()
          .optional()
          .describe("Finds the events that the filter would not find without `not`."),
      }),
    )
    .nullish()
    .describe("All filters must match."),
};
const Export = z.object(WINDOW);
const Search = z.object({
  ...WINDOW,
  groupBy: z.array(FieldName).nullish(),
  buckets: z.int().optional(),
  page: z.int().optional(),
  pageSize: z.int().optional(),
});

const Found = z.object({
  rows: z.array(
    z.object({
      logId: z.string(),
      timestamp: z.number().describe("Epoch ms."),
      log: z.record(z.string(), z.unknown()).nullable().describe("The record as the platform sent it."),
      fields: z.record(z.enum(FIELD_NAMES), z.string()).describe("Texts from requests. Escape them."),
    }),
  ),
  groups: z.array(
    z.object({
      key: z.record(z.string(), z.string()).describe("By the names in `groupBy`."),
      count: z.number(),
      firstSeen: z.number(),
      lastSeen: z.number(),
      context: z.record(z.string(), z.unknown()),
      sparkline: z.array(z.number()).optional(),
    }),
  ),
  total: z.number().describe("Number of rows or groups on all pages."),
  totalPages: z.number(),
  page: z.number(),
});

const ABOUT = `${SEARCH_LIMITS} A value that no event can have is refused. The method is in the records of events only: a filter or group by it is refused if the other filters find more than 10,000 events.`;
const params = z.object({ zone: ZoneId });
/** The body is read by the rules of the search language, which name every mistake. Its schema only documents it. */
const bodyOf = (schema: z.ZodType, example: object) =>
  z.unknown().meta({ wire: { ...z.toJSONSchema(schema), examples: [{ ...SEARCH_SPAN, ...example }] } });

/**
 * `POST /api/v1/zones/{zone}/events/search` and `.../export`: the search of the platform's API with Longwatch's names of the
 * fields, with host, path and method, and with filters that exclude.
 */
export function addSearchEvents(app: FastifyInstance, deps: PlatformDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const tags = ["Events"];
  const refuses = [503];
  typed.post(
    "/api/v1/zones/:zone/events/search",
    {
      config: { access: { scope: "read", zone: "zone" }, refuses },
      schema: {
        tags,
        summary: "Search and group events",
        description: ABOUT,
        params,
        body: bodyOf(Search, {
          groupBy: ["path"],
          filters: [{ field: "action", op: "eq", value: ["block"] }],
        }),
        response: { 200: Found },
      },
    },
    async (request, reply) => {
      const wanted = await readRequest(deps, request, request.params.zone, "search");
      const { rows, groups, total, source } = await answerSearch(deps, request, reply, wanted, toNativeRow);
      const { page, pageSize } = wanted.plan;
      const rest = JSON.stringify({ total, totalPages: Math.ceil(total / pageSize), page });
      void reply.header("x-longwatch-source", source);
      return sendJson(reply, 200, `{"rows":${rows ?? "[]"},"groups":${groups ?? "[]"},${rest.slice(1)}`);
    },
  );
  typed.post(
    "/api/v1/zones/:zone/events/export",
    {
      config: { access: { scope: "export", zone: "zone" }, heavy: "export", refuses: [406, 503] },
      handlerTimeout: LONGEST_EXPORT_MS,
      schema: {
        tags,
        summary: "Export events as CSV, or as NDJSON or Parquet if the Accept header asks for it",
        description: `${ABOUT} The columns are those of the platform's export.`,
        params,
        body: bodyOf(Export, { filters: [{ field: "path", op: "contains", value: ["/admin"], not: true }] }),
        response: { 200: EXPORTED },
      },
    },
    async (request, reply) =>
      sendExport(deps, request, reply, await readRequest(deps, request, request.params.zone, "export")),
  );
}

async function readRequest(
  deps: PlatformDeps,
  request: FastifyRequest,
  zoneId: number,
  kind: "search" | "export",
): Promise<SearchRequest> {
  const read = planBody(deps, request, request.body, { kind, form: "native" });
  if ("mistakes" in read) {
    const mistakes = Object.entries(read.mistakes).flatMap(([field, texts]) =>
      texts.map((text) => toMistake(field, text)),
    );
    throw new Refusal(400, { slug: "invalid-request", mistakes });
  }
  if (!(await isServedZone(deps, request, zoneId)))
    throw new Refusal(404, { detail: `Longwatch keeps no events of zone ${zoneId}.` });
  return { zoneId, ...read };
}

/** Splits `The value 5 is not valid: to must be after from.` into the members of a mistake of the native API. */
function toMistake(field: string, text: string): Mistake {
  const middle = ` is not valid: ${field} `;
  const at = text.lastIndexOf(middle);
  if (at < 0) return { field, rule: text };
  return { field, value: text.slice("The value ".length, at), rule: text.slice(at + middle.length, -1) };
}
