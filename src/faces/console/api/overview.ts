import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSpan } from "../state/span.ts";
import { useZones } from "../state/zones.ts";
import { ask, type Output } from "./ask.ts";

export type Overview = Output<"overview.show">;

/** The answer that several parts of the overview share. Zones that the reader did not choose are left out. */
export function useOverview() {
  const { only, chosen, zones } = useZones();
  const { fromMs, toMs } = useSpan();
  const zone = chosen === "" ? null : (only?.id ?? null);
  const ids = new Set(zones.map(({ id }) => id));
  const isShown = ({ zoneId }: { readonly zoneId: number | null }) =>
    chosen === "" || (zoneId !== null && ids.has(zoneId));
  return useQuery({
    queryKey: ["overview", zone, fromMs, toMs],
    queryFn: ({ signal }) => {
      const query = { zone, from: Math.floor(fromMs), to: Math.ceil(toMs) };
      return ask("overview.show", query, { signal });
    },
    select: (found) => ({
      ...found,
      zones: found.zones.filter(({ id }) => chosen === "" || ids.has(id)),
      rules: found.rules.filter(isShown),
      attention: found.attention.filter(isShown),
    }),
    placeholderData: keepPreviousData,
  });
}
