import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { AlertSort } from "#model/kinds.ts";
import { ask, type Item } from "./ask.ts";

export type Alert = Item<"alerts.list">;

export interface AlertQuery {
  readonly state?: readonly string[];
  readonly severity?: readonly string[];
  readonly kind?: readonly string[];
  readonly rule?: string;
  /** One zone; the API knows no list of them. */
  readonly zone?: number;
  readonly since?: number;
  readonly until?: number;
  readonly sort?: AlertSort;
  readonly limit?: number;
}

/** The newest alerts of one page. The stream makes them be read again. */
export function useAlerts(query: AlertQuery, name: string) {
  return useQuery({
    queryKey: ["alerts", name, query],
    queryFn: ({ signal }) => ask("alerts.list", query, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

/** All alerts, page after page. */
export function useAlertPages(query: AlertQuery) {
  return useInfiniteQuery({
    queryKey: ["alerts", "pages", query],
    queryFn: ({ pageParam, signal }) => ask("alerts.list", { ...query, after: pageParam }, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}
