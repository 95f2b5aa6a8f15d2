import { expect, test } from "vitest";
import {
  EventGroup,
  EventLogEntry,
  EventLogListResponse,
  EventLogsSearchResponse,
  EventRow,
} from "#platform/contract/event-logs.ts";
import { bodyOf, call, listPath, openEmulator, search, TODAY } from "./support.ts";

test("the contract reads every entry that the emulator lists and finds", async () => {
  const emulator = await openEmulator({ eventsPerSecond: 1, pageSize: 2_000 });
  const list = EventLogListResponse.parse(await bodyOf(call(emulator, listPath(TODAY))));
  expect(list.logs.length).toBe(2_000);
  for (const entry of list.logs) EventLogEntry.parse(entry);

  const flat = EventLogsSearchResponse.parse(await search(emulator, { pageSize: 500 }));
  expect(flat.rows.map((row) => EventRow.parse(row))).toHaveLength(500);
  const grouped = EventLogsSearchResponse.parse(await search(emulator, { groupBy: ["ip"], buckets: 3 }));
  for (const group of grouped.groups) expect(EventGroup.parse(group).sparkline).toHaveLength(3);
});
