import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { z } from "zod";
import type { ArchiveDay as ArchiveDaySchema } from "#faces/http/routes/v1/archive-days.ts";
import type { CoverageHour as CoverageHourSchema } from "#faces/http/routes/v1/coverage.ts";
import type { CoverageDay as CoverageDaySchema } from "#faces/http/routes/v1/coverage-days.ts";
import type { CoverageRules as CoverageRulesSchema } from "#faces/http/routes/v1/coverage-rules.ts";
import type { CoverageRun as CoverageRunSchema, StartBody } from "#faces/http/routes/v1/coverage-runs.ts";
import { call } from "./client.ts";
import { askZones } from "./of-zones.ts";
import type { Page } from "./page.ts";
import type { Zone } from "./status.ts";

export type ArchiveDay = z.infer<typeof ArchiveDaySchema>;
export type CoverageDay = z.infer<typeof CoverageDaySchema>;
export type CoverageHour = z.infer<typeof CoverageHourSchema>;
export type CoverageRules = z.infer<typeof CoverageRulesSchema>;
export type CoverageRun = z.infer<typeof CoverageRunSchema>;

const RUNS = "/api/v1/coverage/runs";

/** Every day that is kept, of one zone or of all that the reader may see. */
export function useCoverageDays(zone: number | null, from: number | null = null) {
  return useQuery({
    queryKey: ["coverage", "days", zone, from],
    queryFn: ({ signal }) =>
      call<{ readonly items: readonly CoverageDay[] }>("/api/v1/coverage/days", {
        query: { zone, from },
        signal,
      }),
    staleTime: 60_000,
    refetchInterval: 300_000,
    placeholderData: keepPreviousData,
  });
}

/** The hours of each of these zones in a span of a few days. */
export function useCoverageHours(
  zones: readonly Zone[],
  span: { readonly from: number; readonly to: number },
) {
  return useQuery({
    queryKey: ["coverage", "hours", zones.map(({ id }) => id), span],
    queryFn: ({ signal }) => {
      const ask = ({ id }: Zone) =>
        call<Page<CoverageHour>>("/api/v1/coverage", {
          query: { zone: id, ...span, limit: 500 },
          signal,
        });
      return askZones(zones, ask, signal);
    },
    enabled: zones.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

/** One hour of a zone with its evidence; null if nothing is known of it. */
export function useCoverageHour(zone: number, hourMs: number) {
  return useQuery({
    queryKey: ["coverage", "hour", zone, hourMs],
    queryFn: async ({ signal }) => {
      const query = { zone, from: hourMs, to: hourMs + 3_600_000, limit: 1 };
      return (await call<Page<CoverageHour>>("/api/v1/coverage", { query, signal })).items[0] ?? null;
    },
    refetchInterval: 30_000,
  });
}

/** The counts of an hour by rule, here and on the platform. */
export function useCoverageRules(zone: number, hourMs: number) {
  return useQuery({
    queryKey: ["coverage", "rules", zone, hourMs],
    queryFn: ({ signal }) =>
      call<CoverageRules>("/api/v1/coverage/rules", { query: { zone, hour: hourMs }, signal }),
    refetchInterval: 30_000,
  });
}

/** The archive days that a span touches, newest first. Read again when another check has ended. */
export function useArchiveDays(zone: number | null, span: { readonly from: number; readonly to: number }) {
  const { data } = useCoverageRuns();
  const lastCheck = data?.items.find(({ archive }) => archive !== null)?.id ?? null;
  return useQuery({
    queryKey: ["archive", "days", zone, span, lastCheck],
    queryFn: async ({ signal }) => {
      const found = await call<{ readonly items: readonly ArchiveDay[] }>("/api/v1/archive/days", {
        query: { zone, ...span },
        signal,
      });
      return found.items.toReversed();
    },
    staleTime: 60_000,
    refetchInterval: 300_000,
    placeholderData: keepPreviousData,
  });
}

/** Backfills and verifications, newest first. Read every two seconds while one is not finished. */
export function useCoverageRuns() {
  return useQuery({
    queryKey: ["coverage-runs"],
    queryFn: ({ signal }) => call<{ readonly items: readonly CoverageRun[] }>(RUNS, { signal }),
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ endedAt }) => endedAt === null) === true ? 2_000 : 60_000,
  });
}

export function useStartRun() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: z.input<typeof StartBody>) => call<CoverageRun>(RUNS, { method: "POST", body }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["coverage-runs"] }),
  });
}
