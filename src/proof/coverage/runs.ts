/** Runs that people ask for: backfills, verifications and the like. */
import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import { listReportedDays } from "#db/archive/archived-days.ts";
import type { Queryable } from "#db/client.ts";
import {
  listRuns,
  MOST_UNFINISHED,
  type RequestedRun,
  readRun,
  requestRun,
} from "#db/health/requested-runs.ts";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { jobOfRun } from "#jobs/health/run-requested.ts";
import { DAY_MS } from "#lib/units.ts";
import { findReachFaults, MAX_RUN_DAYS, startOfDay, toDay } from "#model/horizon.ts";
import { RUN_KINDS } from "#model/kinds.ts";
import type { RunResult } from "#operations/execute-run.ts";
import {
  IsoTime,
  Moment,
  maySee,
  Name,
  notFound,
  RowId,
  Text,
  toIso,
  toIsoOrNull,
  visibleZones,
  ZoneId,
  ZoneNumber,
} from "#operations/fields.ts";
import { defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { checkSpan } from "#operations/span.ts";
import { widenSpan } from "../verify/check.ts";

const CoverageRun = z
  .object({
    id: z.number().int(),
    kind: z.enum(RUN_KINDS),
    zoneId: z.number().int(),
    from: IsoTime,
    to: IsoTime,
    ids: z.boolean(),
    state: z.enum(["waiting", "running", "done", "failed"]),
    percent: z.number().int(),
    step: Text.nullable(),
    problem: Text.nullable().describe(
      "Why it failed, or why its last start failed. It is then started again.",
    ),
    requestedBy: Text,
    requestedAt: IsoTime,
    startedAt: IsoTime.nullable(),
    endedAt: IsoTime.nullable(),
    backfill: z
      .object({
        route: Name,
        newEvents: z.number(),
        expired: z.array(z.object({ from: IsoTime, to: IsoTime })),
      })
      .nullable()
      .describe("The result of a backfill that is done."),
    checks: z
      .array(
        z.object({
          name: Name,
          sides: z.array(Name),
          compared: Text,
          verdict: Text.nullable(),
          failure: Text.nullable(),
          differenceCount: z.number().int(),
          differences: z.array(
            z.object({
              at: IsoTime,
              ruleId: Name.nullable(),
              expected: z.number(),
              found: z.number(),
              detail: Text.nullable(),
            }),
          ),
          notes: z.array(Text),
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
              day: Name.describe("The UTC day: 2026-11-21."),
              path: Name.describe("The file, relative to the archive folder."),
              problem: Text,
            }),
          )
          .describe("At most 100. Escape the texts."),
      })
      .nullable()
      .describe("The result of a check of archive days that is done."),
  })
  .meta({ id: "CoverageRun" });

type CoverageRun = z.infer<typeof CoverageRun>;

function toRunItem(run: RequestedRun): CoverageRun {
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
    problem: run.problem,
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

function stateOf({ endedAt, startedAt, result }: RequestedRun): CoverageRun["state"] {
  if (endedAt !== null) return result === null ? "failed" : "done";
  return startedAt === null ? "waiting" : "running";
}

const PATH = "/api/v1/coverage/runs";
const TAG = "Coverage";
const MOST_LISTED = 50;

const Wanted = z.strictObject({
  kind: z.enum(RUN_KINDS),
  zone: ZoneNumber,
  from: Moment,
  to: Moment,
  ids: z.boolean().default(false).describe("verify: also compare a few hours id by id."),
});

const startRun = defineChange({
  name: "runs.start",
  summary: "Start a backfill, a verification, or a check of archive days",
  description: `backfill reads the span again from the platform, at most the last 72 hours. verify compares the events of Postgres with the platform and with themselves, at most ${MAX_RUN_DAYS} days. verify-archive reads every file of the archive days that the span touches, at most ${MAX_RUN_DAYS}, and compares them with their hashes, statements, roll-up and sealed hours; a file that differs raises the alert "archive damaged". The answer is at once; the run goes on in the background, also after a restart. A second request with the same span returns the run that is not finished.`,
  http: ["POST", PATH],
  tag: TAG,
  scope: "act",
  refuses: [409, 422],
  input: Wanted,
  output: CoverageRun,
  example: { kind: "verify", zone: 101, from: "2026-11-21T00:00:00Z", to: "2026-11-22T00:00:00Z" },
  goesOn: true,
  run: async ({ tx, db, now, caller, enqueue, afterCommit }, input) => {
    const { kind, zone: zoneId, ids } = input;
    visibleZones(caller, zoneId);
    const span = readSpan(input);
    const { from, to } = span;
    checkSpan(from, to, { max: MAX_RUN_DAYS, widthMs: DAY_MS, what: "days" });
    if ((await listKnownZones(db, zoneId)).length === 0) throw notFound(`zone ${zoneId}`);
    if (kind === "backfill") refuseReach(span, now);
    else if (kind === "verify-archive") await refuseWithoutArchive(db, { zoneId, from, to });
    else if ((await widenSpan(db, { zoneId, now, from, to })).kind !== "whole")
      throw refuse(
        "from",
        "must be in a span of which Postgres has events. The kind verify-archive checks older days",
      );
    const withIds = kind === "verify" && ids;
    const requestedBy = maskText(caller.name);
    const requested = await requestRun(tx, { kind, zoneId, from, to, withIds, requestedBy }, now);
    if (requested === null)
      throw new Refusal(409, {
        slug: "too-many-runs",
        detail: `Zone ${zoneId} has ${MOST_UNFINISHED} unfinished runs. Wait until one of them has ended.`,
      });
    const { run, isNew } = requested;
    // A run that is not enqueued waits for the sweep.
    if (isNew) afterCommit(() => enqueue(jobOfRun(kind), { id: run.id }).catch(() => false));
    const details = { zoneId, from: toIso(from), to: toIso(to), ...(withIds ? { ids: true } : {}) };
    const audit = isNew ? { action: `${kind}.requested`, subject: `run ${run.id}`, details } : null;
    return { output: toRunItem(run), audit };
  },
});

const listCoverageRuns = defineQuery({
  name: "runs.list",
  summary:
    "List backfills, verifications and checks of archive days that were started over the API, newest first",
  description: `At most ${MOST_LISTED}. An ended run is listed for 90 days.`,
  http: ["GET", PATH],
  tag: TAG,
  scope: "read",
  input: z.strictObject({ zone: ZoneId.optional() }),
  output: z.object({ items: z.array(CoverageRun) }),
  run: async ({ db, caller }, { zone }) => {
    const runs = await listRuns(db, { zoneIds: visibleZones(caller, zone), limit: MOST_LISTED });
    return { items: runs.map(toRunItem) };
  },
});

const showRun = defineQuery({
  name: "runs.show",
  summary: "Show one backfill, verification or check of archive days",
  http: ["GET", `${PATH}/:id`],
  tag: TAG,
  scope: "read",
  input: z.strictObject({ id: RowId }),
  output: CoverageRun,
  run: async ({ db, caller }, { id }) => {
    const run = await readRun(db, id);
    if (run === null || !maySee(caller, run.zoneId)) throw notFound(`run ${id}`);
    return toRunItem(run);
  },
});

export const runOperations = [startRun, listCoverageRuns, showRun] as const;

/** Epoch ms. Archive days are checked as a whole. */
function readSpan({ kind, from, to }: z.output<typeof Wanted>) {
  const span = { from: Date.parse(from), to: Date.parse(to) };
  if (kind !== "verify-archive") return span;
  return { from: startOfDay(span.from), to: startOfDay(span.to + DAY_MS - 1) };
}

/** @throws {Refusal} 422 if no day of the span is in the archive. */
async function refuseWithoutArchive(
  db: Queryable,
  { zoneId, from, to }: { readonly zoneId: number; readonly from: number; readonly to: number },
): Promise<void> {
  const days = await listReportedDays(db, { zoneIds: [zoneId], from: toDay(from), to: toDay(to) });
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
