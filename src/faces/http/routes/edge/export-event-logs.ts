import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { PARQUET_TYPE, preferredForm } from "#archive/rules/export-lines.ts";
import { asksMethod } from "#archive/rules/query/plan-search.ts";
import type { ZonesRequest } from "#archive/rules/query/read-search.ts";
import type { WrittenColumns } from "#archive/rules/records/to-row.ts";
import { type ExportText, exportHead, exportZones, type RunPart } from "#archive/search/export-events.ts";
import { exportParquet } from "#archive/search/read-union.ts";
import { priceSearch, readColumns, SEARCH_LIMITS, SEARCH_SPAN } from "#archive/search/searching.ts";
import type { ScratchFile } from "#db/archive/archive-reader.ts";
import type { ExportFormName } from "#model/kinds.ts";
import { maySeeZone } from "#operations/caller.ts";
import { Refusal } from "#operations/refusal.ts";
import { GenericRequestResponse } from "#platform/contract/errors.ts";
import { EventLogsExportRequest } from "#platform/contract/event-logs.ts";
import { clientGone } from "../../operations.ts";
import {
  PLATFORM_TAGS,
  type PlatformDeps,
  searchRefusals,
  sendJson,
  unknownZoneBlock,
  ZONE_PARAM,
} from "./platform.ts";
import { readSearchRequest } from "./search-event-logs.ts";

/** Time limit of an export. A client that reads nothing is disconnected much earlier. */
export const LONGEST_EXPORT_MS = 3_600_000;

export const EXPORTED = {
  content: {
    "text/csv": { schema: z.string() },
    "application/x-ndjson": { schema: z.string() },
    [PARQUET_TYPE]: { schema: z.string() },
  },
};

const schema = {
  tags: PLATFORM_TAGS,
  summary: "Export events as CSV, or as NDJSON or Parquet if the Accept header asks for it",
  description: `${SEARCH_LIMITS} In CSV, a cell that a spreadsheet would run as a formula begins with an apostrophe. NDJSON and Parquet contain the texts unchanged. A Parquet file has the columns of the archive's event files, is not sorted, and must be complete within the time limit of a search. A key that sees masked addresses gets no Parquet.`,
  params: z.object(ZONE_PARAM),
  body: EventLogsExportRequest.meta({
    examples: [{ ...SEARCH_SPAN, filters: [{ field: "ruleId", op: "eq", value: ["942100"] }] }],
  }),
  response: { 200: EXPORTED, ...searchRefusals(GenericRequestResponse) },
};

/**
 * Exports all events that match, newest first (platform API spec 4.8). The default is CSV with cells that no
 * spreadsheet evaluates. `Accept` may request NDJSON or Parquet with unchanged values. The answer is streamed: a
 * failure in the middle ends the connection, so that an incomplete file is recognised.
 */
export function addExportEventLogs(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "export" }, errorForm: "bare", heavy: "export" } as const;
  const options = { config, schema, handlerTimeout: LONGEST_EXPORT_MS };
  app.post("/shield/event-logs/:shieldZoneId/export", options, async (request, reply) => {
    const wanted = await readSearchRequest(deps, request, reply, "export");
    if (wanted === null) return reply;
    if (wanted === "unknown zone") return sendJson(reply, 202, unknownZoneBlock());
    const { zoneId, ...one } = wanted;
    return sendExport(deps, request, reply, { ...one, zoneIds: [zoneId], isZoned: false });
  });
}

/** Writes an audit entry for each zone, then sends the events in this form, by default in the one that `Accept` names. */
export async function sendExport(
  deps: PlatformDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { isZoned, ...wanted }: ZonesRequest & Pick<ExportText, "isZoned">,
  { format: asked, ...chosen }: WrittenColumns & { readonly format?: ExportFormName | undefined } = {},
): Promise<FastifyReply> {
  const { zoneIds, plan, isMasked } = wanted;
  const form = asked ?? preferredForm(request.headers.accept);
  const beside = form === "ocsf" || form === "parquet" ? `the format ${form}` : null;
  const choice = readColumns(chosen, { isExport: true, beside });
  if (form === "parquet" && isMasked) {
    const [field, value, other] =
      asked === undefined ? ["accept", request.headers.accept ?? "", "text/csv"] : ["format", asked, "csv"];
    const rule = `must not be ${asked ?? PARQUET_TYPE}, because this key sees masked addresses; use ${other}`;
    throw new Refusal(406, { slug: "not-acceptable", mistakes: [{ field, value, rule }] });
  }
  // An export by method reads all events at once, as a search does.
  const price = asksMethod(plan)
    ? await priceSearch(deps.db, deps.searching, wanted)
    : ({ kind: "long" } as const);
  await deps.auditExport(request, wanted);
  const { runInPlace, ocsf } = deps.searching;
  const gone = clientGone(reply);
  const isAllowed = async () => {
    const now = await request.readCallerAgain();
    const isSame = now !== null && now.scopes.has("export") && zoneIds.every((id) => maySeeZone(now, id));
    return isSame && (isMasked || !now.masked);
  };
  endWhenRefused(reply.raw, isAllowed, deps.checkKeyEveryMs);
  const name = `event-logs-${isZoned ? "zones" : zoneIds[0]}`;
  const work = { ...price, signal: gone };
  if (form === "parquet") {
    const file = await runInPlace(request, work, (parts) => exportParquet(parts, zoneIds, plan, gone));
    return sendFile(reply, removeAfter(file), `${name}.parquet`, PARQUET_TYPE);
  }
  const runPart: RunPart = (isFirst, run) => runInPlace(request, { ...work, isPatient: !isFirst }, run);
  const text = { form, choice, isZoned };
  const all = exportZones(runPart, wanted, { ...text, ocsf, signal: gone });
  // A failure before anything was sent is answered as any failure.
  const first = await all.next();
  const body = Readable.from(join(exportHead(text), first, all), { objectMode: false });
  const [ending, type] = form === "csv" ? ["csv", "text/csv"] : ["ndjson", "application/x-ndjson"];
  return sendFile(reply, body, `${name}.${ending}`, `${type}; charset=utf-8`);
}

function sendFile(reply: FastifyReply, body: Readable, name: string, type: string): FastifyReply {
  return reply
    .code(200)
    .type(type)
    .header("content-disposition", `attachment; filename="${name}"`)
    .send(body);
}

/** Returns a stream of a file, and removes the file once it was read or the client has left. */
function removeAfter({ path, remove }: ScratchFile): Readable {
  return createReadStream(path).once("close", () => void remove().catch(() => undefined));
}

async function* join<Part extends string | Buffer>(
  header: string,
  first: IteratorResult<Part, void>,
  rest: AsyncIterable<Part>,
): AsyncGenerator<string | Part, void, undefined> {
  if (header !== "") yield header;
  if (first.done !== true && first.value.length > 0) yield first.value;
  yield* rest;
}

/** Interval of the check. A client with a revoked key may read for at most this long and the time of one lookup. */
const CHECK_EVERY_MS = 10_000;

/**
 * Ends an answer once `isAllowed` returns false. A timer calls it, because a client that does not read makes no
 * progress. While the key cannot be looked up, a client that was admitted stays connected.
 */
function endWhenRefused(
  raw: ServerResponse,
  isAllowed: () => Promise<boolean>,
  everyMs = CHECK_EVERY_MS,
): void {
  if (raw.destroyed) return;
  const timer = setInterval(() => void check(), everyMs).unref();
  raw.once("close", () => clearInterval(timer));

  async function check(): Promise<void> {
    if (!(await isAllowed().catch(() => true))) raw.destroy();
  }
}
