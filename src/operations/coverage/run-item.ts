import { z } from "zod";
import type { RequestedRun } from "#db/service/requested-runs.ts";
import { RUN_KINDS } from "#model/kinds.ts";
import type { RunResult } from "../execute-run.ts";
import { IsoTime, Name, Text, toIso, toIsoOrNull } from "../fields.ts";

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

export function toRunItem(run: RequestedRun): CoverageRun {
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
