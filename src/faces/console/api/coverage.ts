import { type Item, type Output, useChange, useOperation } from "./ask.ts";

export type ArchiveDay = Item<"archive.days">;
export type CoverageDay = Item<"coverage.days">;
export type CoverageHour = Item<"coverage.list">;
export type CoverageRun = Output<"runs.show">;

export const SELDOM = { staleTime: 60_000, refetchInterval: 300_000 };

/** Every day that is kept, of one zone or of all that the reader may see. */
export const useCoverageDays = (zone: number | null, from: number | null = null) =>
  useOperation("coverage.days", { zone, from }, SELDOM);

/** Backfills and verifications, newest first. Read every two seconds while one is not finished. */
export const useCoverageRuns = () =>
  useOperation(
    "runs.list",
    {},
    {
      refetchInterval: ({ state: { data } }) =>
        data?.items.some(({ endedAt }) => endedAt === null) === true ? 2_000 : 60_000,
    },
  );

export const useStartRun = () => useChange("runs.start");
