import { useSpan } from "../state/span.ts";
import { useZones } from "../state/zones.ts";
import { type Output, useOperation } from "./ask.ts";

export type Overview = Output<"overview.show">;

/** The answer that several parts of the overview share. Zones that the reader did not choose are left out. */
export function useOverview() {
  const { asked, isShown } = useZones();
  const { fromMs, toMs } = useSpan();
  const query = { zone: asked, from: Math.floor(fromMs), to: Math.ceil(toMs) };
  return useOperation("overview.show", query, {
    select: (found) => ({
      ...found,
      zones: found.zones.filter(({ id }) => isShown(id)),
      rules: found.rules.filter(({ zoneId }) => isShown(zoneId)),
      attention: found.attention.filter(({ zoneId }) => isShown(zoneId)),
    }),
  });
}
