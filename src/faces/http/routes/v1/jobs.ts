import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listTickTimes } from "#db/service/leases.ts";
import { IsoTime, requireEveryZone, toIso, toIsoOrNull } from "#operations/fields.ts";
import type { ApiDeps } from "./api-deps.ts";

export const JobItem = z
  .object({
    job: z.string(),
    runs: z
      .record(z.string(), z.number())
      .describe("Attempts since the start of the answering process, by outcome."),
    meanSeconds: z.number().nullable(),
    lastSuccessAt: IsoTime.nullable(),
    ticks: z
      .array(z.object({ name: z.string(), nextAt: IsoTime }))
      .describe("When the job is enqueued next, by zone where it runs for each zone."),
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
          "Runs, durations and failures are those of the process that answers. The next runs are of the whole installation.",
        response: { 200: z.object({ items: z.array(JobItem) }) },
      },
    },
    async ({ caller }) => {
      requireEveryZone(caller);
      const runs = new Map((await service.readJobRuns()).map((one) => [one.job, one]));
      const ticks = Map.groupBy(await listTickTimes(archive), ({ name }) => name.split(".")[0] ?? name);
      const names = [...new Set([...runs.keys(), ...ticks.keys()])].sort();
      const items = names.map((job) => {
        const done = runs.get(job);
        return {
          job,
          runs: { ...done?.runs },
          meanSeconds: done?.meanSeconds ?? null,
          lastSuccessAt: toIsoOrNull(done?.lastSuccessAt ?? null),
          ticks: (ticks.get(job) ?? []).map(({ name, dueAt }) => ({ name, nextAt: toIso(dueAt) })),
        };
      });
      return { items };
    },
  );
}
