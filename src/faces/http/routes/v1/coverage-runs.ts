import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listReportedDays } from "#db/archive/archive-report.ts";
import { listKnownZones } from "#db/coverage/coverage-report.ts";
import { listRuns, MOST_UNFINISHED, type RequestedRun, readRun } from "#db/service/requested-runs.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { RUN_KINDS } from "#model/kinds.ts";
import { findReachFaults, MAX_RUN_DAYS } from "#model/run-span.ts";
import type { RunResult } from "#operations/execute-run.ts";
import {
  actOf,
  IsoTime,
  known,
  MAX_ZONE_ID,
  Moment,
  maySee,
  notFound,
  RowId,
  toIso,
  toIsoOrNull,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { checkSpan } from "#operations/span.ts";
import { widenSpan } from "#operations/verify/widen-span.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";
import type { ApiDeps } from "./api-deps.ts";

const MOST_LISTED = 50;

export const StartBody = z
  .strictObject({
    kind: z.enum(RUN_KINDS),
    zone: z.int().min(1).max(MAX_ZONE_ID),
    from: Moment,
    to: Moment,
    ids: z.boolean().default(false).describe("verify: also compare a few hours id by id."),
  })
  .meta({
    examples: [{ kind: "verify", zone: 101, from: "2026-11-21T00:00:00Z", to: "2026-11-22T00:00:00Z" }],
  });

export const CoverageRun = z
  .object({
    id: z.number().int(),
    kind: z.enum(RUN_KINDS),
    zoneId: z.number().int(),
    from: IsoTime,
    to: IsoTime,
    ids: z.boolean(),
    state: z.enum(["waiting", "running", "done", "failed"]),
    percent: z.number().int(),
    step: z.string().nullable(),
    problem: z
      .string()
      .nullable()
      .describe("Why it failed, or why its last start failed. It is then started again."),
    requestedBy: z.string(),
    requestedAt: IsoTime,
    startedAt: IsoTime.nullable(),
    endedAt: IsoTime.nullable(),
    backfill: z
      .object({
        route: z.string(),
        newEvents: z.number(),
        expired: z.array(z.object({ from: IsoTime, to: IsoTime })),
      })
      .nullable()
      .describe("The result of a backfill that is done."),
    checks: z
      .array(
        z.object({
          name: z.string(),
          sides: z.array(z.string()),
          compared: z.string(),
          verdict: z.string().nullable(),
          failure: z.string().nullable(),
          differenceCount: z.number().int(),
          differences: z.array(
            z.object({
              at: IsoTime,
              ruleId: z.string().nullable(),
              expected: z.number(),
              found: z.number(),
              detail: z.string().nullable(),
            }),
          ),
          notes: z.array(z.string()),
        }),
      )
      .nullable()
      .describe(
        "The result of a verification that is done. At most 100 differences of each check. Escape the texts.",
      ),
    archive: z
      .object({
        days: z.number().int(),
        files: z.number().int(),
        events: z.number(),
        bytes: z.number(),
        problemCount: z.number().int().describe("0 means that every file is as it was written."),
        problems: z
          .array(
            z.object({
              day: z.string().describe("The UTC day: 2026-11-21."),
              path: z.string().describe("The file, relative to the archive folder."),
              problem: z.string(),
            }),
          )
          .describe("At most 100. Escape the texts."),
      })
      .nullable()
      .describe("The result of a check of archive days that is done."),
  })
  .meta({ id: "CoverageRun" });

/** `/api/v1/coverage/runs`: start a backfill, a verification or a check of archive days, and watch it. */
export function addCoverageRuns(app: FastifyInstance, { archive, clock, acts }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    "/api/v1/coverage/runs",
    {
      config: { access: { scope: "act" }, refuses: [409, 422] },
      schema: {
        tags: ["Coverage"],
        summary: "Start a backfill, a verification, or a check of archive days",
        description: `backfill reads the span again from the platform, at most the last 72 hours. verify compares the events of Postgres with the platform and with themselves, at most ${MAX_RUN_DAYS} days. verify-archive reads every file of the archive days that the span touches, at most ${MAX_RUN_DAYS}, and compares them with their hashes, statements, roll-up and sealed hours; a file that differs raises the alert "archive damaged". The answer is at once; the run goes on in the background, also after a restart. A second request with the same span returns the run that is not finished.`,
        body: StartBody,
        response: { 202: CoverageRun },
      },
    },
    async ({ body, caller }, reply) => {
      const { kind, zone, ids } = body;
      visibleZones(caller, zone);
      const { from, to } = readSpan(body);
      const nowMs = clock();
      checkSpan(from, to, { max: MAX_RUN_DAYS, widthMs: DAY_MS, what: "days" });
      if ((await listKnownZones(archive, zone)).length === 0) throw notFound(`zone ${zone}`);
      if (kind === "backfill") refuseReach({ from, to }, nowMs);
      else if (kind === "verify-archive") await refuseWithoutArchive(archive, { zoneId: zone, from, to });
      else if ((await widenSpan(archive, { zoneId: zone, now: nowMs, from, to })).kind !== "whole")
        throw refuse(
          "from",
          "must be in a span of which Postgres has events. The kind verify-archive checks older days",
        );
      const wanted = { kind, zoneId: zone, from, to, withIds: kind === "verify" && ids };
      const requested = await acts.requestRun({ ...wanted, ...actOf(caller), nowMs });
      if (requested === null)
        throw new Refusal(409, {
          slug: "too-many-runs",
          detail: `Zone ${zone} has ${MOST_UNFINISHED} unfinished runs. Wait until one of them has ended.`,
        });
      return reply.code(202).send(toRunItem(requested.run, known(caller).masked));
    },
  );
  typed.get(
    "/api/v1/coverage/runs",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Coverage"],
        summary:
          "List backfills, verifications and checks of archive days that were started over the API, newest first",
        description: `At most ${MOST_LISTED}. An ended run is listed for 90 days.`,
        querystring: z.strictObject({ zone: ZoneId.optional() }),
        response: { 200: z.object({ items: z.array(CoverageRun) }) },
      },
    },
    async ({ query: { zone }, caller }) => {
      const runs = await listRuns(archive, { zoneIds: visibleZones(caller, zone), limit: MOST_LISTED });
      return { items: runs.map((run) => toRunItem(run, known(caller).masked)) };
    },
  );
  typed.get(
    "/api/v1/coverage/runs/:id",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Coverage"],
        summary: "Show one backfill, verification or check of archive days",
        params: z.object({ id: RowId }),
        response: { 200: CoverageRun },
      },
    },
    async ({ params: { id }, caller }) => {
      const run = await readRun(archive, id);
      if (run === null || !maySee(caller, run.zoneId)) throw notFound(`run ${id}`);
      return toRunItem(run, known(caller).masked);
    },
  );
}

/** Epoch ms. Archive days are checked as a whole. */
function readSpan({ kind, from, to }: z.output<typeof StartBody>) {
  const span = { from: Date.parse(from), to: Date.parse(to) };
  if (kind !== "verify-archive") return span;
  return { from: startOfDay(span.from), to: startOfDay(span.to + DAY_MS - 1) };
}

/** @throws {Refusal} 422 if no day of the span is in the archive. */
async function refuseWithoutArchive(
  archive: ApiDeps["archive"],
  { zoneId, from, to }: { readonly zoneId: number; readonly from: number; readonly to: number },
): Promise<void> {
  const days = await listReportedDays(archive, { zoneIds: [zoneId], from: toDay(from), to: toDay(to) });
  if (days.length === 0) throw refuse("from", "must be in a span with archive days");
}

function refuse(field: string, rule: string): Refusal {
  return new Refusal(422, { slug: "invalid-span", mistakes: [{ field, rule }] });
}

/** @throws {Refusal} 422 if the platform no longer has the span, or not yet. */
function refuseReach(span: { readonly from: number; readonly to: number }, nowMs: number): void {
  const [fault] = findReachFaults({ ...span, route: "auto" }, nowMs);
  if (fault !== undefined) throw refuse(fault.field, `must be ${fault.rule}`);
}

function stateOf({ endedAt, startedAt, result }: RequestedRun): z.infer<typeof CoverageRun>["state"] {
  if (endedAt !== null) return result === null ? "failed" : "done";
  return startedAt === null ? "waiting" : "running";
}

function toRunItem(run: RequestedRun, isMasked: boolean): z.infer<typeof CoverageRun> {
  const result = run.result as RunResult | null;
  const span = (one: { readonly from: number; readonly to: number }) => ({
    from: toIso(one.from),
    to: toIso(one.to),
  });
  return {
    id: run.id,
    kind: run.kind,
    zoneId: run.zoneId,
    ...span(run),
    ids: run.withIds,
    state: stateOf(run),
    percent: run.percent,
    step: run.step,
    // A failure can quote the platform.
    problem: isMasked ? maskNullable(run.problem) : run.problem,
    requestedBy: run.requestedBy,
    requestedAt: toIso(run.requestedAt),
    startedAt: toIsoOrNull(run.startedAt),
    endedAt: toIsoOrNull(run.endedAt),
    backfill:
      result?.kind === "backfill"
        ? { route: result.route, newEvents: result.newEvents, expired: result.expired.map(span) }
        : null,
    checks:
      result?.kind === "verify"
        ? result.checks.map((check) => ({
            ...check,
            sides: [...check.sides],
            verdict: check.verdict ?? null,
            differences: check.differences.map(({ at, ...rest }) => ({ ...rest, at: toIso(at) })),
            notes: [...check.notes],
          }))
        : null,
    archive:
      result?.kind === "verify-archive"
        ? {
            ...result,
            problems: result.problems.map(({ day, path, problem }) => ({ day, path, problem })),
          }
        : null,
  };
}
