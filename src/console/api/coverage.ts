import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type { CoverageDay as CoverageDaySchema } from "../../http/routes/v1/coverage-days.ts";
import { call } from "./client.ts";

export type CoverageDay = z.infer<typeof CoverageDaySchema>;

/** Every day that is kept, of one zone or of all that the reader may see. */
export function useCoverageDays(zone: number | null) {
  return useQuery({
    queryKey: ["coverage", "days", zone],
    queryFn: ({ signal }) =>
      call<{ readonly items: readonly CoverageDay[] }>("/api/v1/coverage/days", { query: { zone }, signal }),
    staleTime: 60_000,
    refetchInterval: 300_000,
    placeholderData: keepPreviousData,
  });
}
