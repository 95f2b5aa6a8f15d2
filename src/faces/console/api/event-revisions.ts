import { useQuery } from "@tanstack/react-query";
import { ask, type Output } from "./ask.ts";
import type { EventRow } from "./search.ts";

export type RevisedValue = Output<"events.revisions">["values"][number];

/** Returns the values of an event that later looks at the platform changed. */
export function useEventRevisions({ zoneId, logId, timestamp }: EventRow) {
  return useQuery({
    queryKey: ["events.revisions", zoneId, logId, timestamp],
    queryFn: ({ signal }) => ask("events.revisions", { zone: zoneId, logId, at: timestamp }, { signal }),
  });
}
