import { z } from "zod";
import { EpochMs } from "./epoch-ms.ts";
import { EventLogsFilter, WINDOW_ORDER } from "./event-logs-search.ts";

/** The request of an export; platform API spec 2.6. It has no grouping and no paging. */
export const EventLogsExportRequest = z
  .strictObject({
    from: EpochMs,
    to: EpochMs,
    query: z.string().nullish(),
    filters: z.array(EventLogsFilter).nullish(),
  })
  .refine((request) => request.to > request.from, WINDOW_ORDER);
export type EventLogsExportRequest = z.infer<typeof EventLogsExportRequest>;
