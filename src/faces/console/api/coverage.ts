import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ask, type Item, type Output, useChange, useOperation } from "./ask.ts";
import { askZones } from "./of-zones.ts";
import type { Zone } from "./status.ts";

export type ArchiveDay = Item<"archive.days">;
export type CoverageDay = Item<"coverage.days">;
export type CoverageHour = Item<"coverage.list">;
export type CoverageRules = Output<"coverage.rules">;
export type CoverageRun = Output<"runs.show">;

interface Span {
  readonly from: number;
  readonly to: number;
}

const SELDOM = { staleTime: 60_000, refetchInterval: 300_000 };

/** Every day that is kept, of one zone or of all that the reader may see. */
export const useCoverageDays = (zone: number | null, from: number | null = null) =>
  useOperation("coverage.days", { zone, from }, SELDOM);

/** The hours of each of these zones in a span of a few days. */
export function useCoverageHours(zones: readonly Zone[], span: Span) {
  return useQuery({
    queryKey: ["coverage.list", zones.map(({ id }) => id), span],
    queryFn: ({ signal }) =>
      askZones(
        zones,
        ({ id }) => ask("coverage.list", { zone: id, ...span, limit: 500 }, { signal }),
        signal,
      ),
    enabled: zones.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

/** One hour of a zone with its evidence; null if nothing is known of it. */
export function useCoverageHour(zone: number, hourMs: number) {
  return useQuery({
    queryKey: ["coverage.list", zone, hourMs],
    queryFn: async ({ signal }) => {
      const input = { zone, from: hourMs, to: hourMs + 3_600_000, limit: 1 };
      return (await ask("coverage.list", input, { signal })).items[0] ?? null;
    },
    refetchInterval: 30_000,
  });
}

/** The counts of an hour by rule, here and on the platform. */
export function useCoverageRules(zone: number, hourMs: number) {
  return useQuery({
    queryKey: ["coverage.rules", zone, hourMs],
    queryFn: ({ signal }) => ask("coverage.rules", { zone, hour: hourMs }, { signal }),
    refetchInterval: 30_000,
  });
}

/** The archive days that a span touches, newest first. Read again when another check has ended. */
export function useArchiveDays(zone: number | null, span: Span) {
  const { data } = useCoverageRuns();
  const lastCheck = data?.items.find(({ archive }) => archive !== null)?.id ?? null;
  return useQuery({
    queryKey: ["archive.days", zone, span, lastCheck],
    queryFn: async ({ signal }) =>
      (await ask("archive.days", { zone, ...span }, { signal })).items.toReversed(),
    placeholderData: keepPreviousData,
    ...SELDOM,
  });
}

/** Backfills and verifications, newest first. Read every two seconds while one is not finished. */
export function useCoverageRuns() {
  return useQuery({
    queryKey: ["runs.list"],
    queryFn: ({ signal }) => ask("runs.list", {}, { signal }),
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ endedAt }) => endedAt === null) === true ? 2_000 : 60_000,
  });
}

export const useStartRun = () => useChange("runs.start", ["runs.list"]);
