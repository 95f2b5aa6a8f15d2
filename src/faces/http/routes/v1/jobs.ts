import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readReplicas } from "#db/service/replicas.ts";
import { LAST_RESULTS } from "#model/kinds.ts";
import { IsoTime, requireEveryZone, toIsoOrNull } from "#operations/fields.ts";
import { type ListedTick, listTicks } from "#operations/list-ticks.ts";
import type { ApiDeps } from "./api-deps.ts";

const TickItem = z
  .object({
    expression: z.string().nullable().describe("A cron expression of six fields, in UTC."),
    lastRun: z
      .object({ at: IsoTime, result: z.enum(LAST_RESULTS), why: z.string().nullable() })
      .nullable()
      .describe("The last run in any process, and why it did nothing or failed."),
    nextAt: IsoTime.nullable(),
    off: z.string().nullable().describe("Why there is no next run."),
  })
  .meta({ id: "Tick" });

export const JobItem = z
  .object({
    job: z.string(),
    runs: z
      .record(z.string(), z.number())
      .describe("Attempts since the start of the answering process, by outcome."),
    meanSeconds: z.number().nullable(),
    lastSuccessAt: IsoTime.nullable(),
    tick: TickItem.nullable().describe("When the job is enqueued. Null: only when there is work."),
  })
  .meta({ id: "Job" });

/** `GET /api/v1/jobs`. */
export function addJobs(app: FastifyInstance, { archive, service }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/jobs",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Service"],
        summary: "List background jobs with their last and next runs",
        description:
          "Runs, durations and the last success are those of the process that answers. Ticks are those of the whole installation.",
        response: { 200: z.object({ items: z.array(JobItem) }) },
      },
    },
    async ({ caller }) => {
      requireEveryZone(caller);
      const runs = new Map((await service.readJobRuns()).map((one) => [one.job, one]));
      const ticks = new Map<string, ListedTick>(
        listTicks(await readReplicas(archive)).map((tick) => [tick.job, tick]),
      );
      const items = [...new Set([...runs.keys(), ...ticks.keys()])].sort().map((job) => {
        const done = runs.get(job);
        return {
          job,
          runs: { ...done?.runs },
          meanSeconds: done?.meanSeconds ?? null,
          lastSuccessAt: toIsoOrNull(done?.lastSuccessAt ?? null),
          tick: ticks.get(job) ?? null,
        };
      });
      return { items };
    },
  );
}
