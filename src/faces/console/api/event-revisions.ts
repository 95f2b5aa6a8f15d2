import { useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type { EventRevisions as EventRevisionsSchema } from "#faces/http/routes/v1/event-revisions.ts";
import { call } from "./client.ts";
import { type EventRow, eventsPath } from "./search.ts";

type EventRevisions = z.infer<typeof EventRevisionsSchema>;
export type RevisedValue = EventRevisions["values"][number];

/** What later looks at the platform changed of an event. */
export function useEventRevisions({ zoneId, logId, timestamp }: EventRow) {
  return useQuery({
    queryKey: ["event", "revisions", zoneId, logId, timestamp],
    queryFn: ({ signal }) =>
      call<EventRevisions>(`${eventsPath(zoneId)}/revisions`, { query: { logId, at: timestamp }, signal }),
  });
}
