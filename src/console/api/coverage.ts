import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type { CoverageHour } from "../../http/routes/v1/coverage.ts";
import type { CoverageDay as CoverageDaySchema } from "../../http/routes/v1/coverage-days.ts";
import { HOUR_MS } from "../../lib/units.ts";
import { call } from "./client.ts";
import type { Page } from "./page.ts";

const MAX_PAGES = 20;

/** Every hour of a span, of one zone or of all that the reader may see. */
export function useCoverageHours({
  zone,
  fromMs,
  toMs,
}: {
  readonly zone: number | null;
  readonly fromMs: number;
  readonly toMs: number;
}) {
  const from = Math.floor(fromMs / HOUR_MS) * HOUR_MS;
  const to = Math.ceil(toMs / HOUR_MS) * HOUR_MS;
  return useQuery({
    queryKey: ["coverage", "hours", zone, from, to],
    queryFn: async ({ signal }) => {
      const hours: CoverageHour[] = [];
      let after: string | null = null;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const query = { zone, from, to, limit: 2_000, after };
        const answer: Page<CoverageHour> = await call("/api/v1/coverage", { query, signal });
        hours.push(...answer.items);
        after = answer.next;
        if (after === null) break;
      }
      return hours;
    },
    staleTime: 30_000,
    refetchInterval: 60_000,
    placeholderData: keepPreviousData,
  });
}

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
