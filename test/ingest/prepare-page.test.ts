import { expect, test } from "vitest";
import { z } from "zod";
import type { WafEvent } from "#model/waf-event.ts";
import { acceptedAt } from "#stages/ingest/accepted-times.ts";
import { openPage } from "#stages/ingest/open-page.ts";
import { preparePage } from "#stages/ingest/prepare-page.ts";

test("each event keeps its own record, and each refused entry its reason and bytes", () => {
  const now = Date.UTC(2026, 10, 20, 12);
  const schema = z.object({ logId: z.string(), at: z.number() });
  const toEvent = ({ logId, at }: { logId: string; at: number }) => ({ logId, occurredAt: at }) as WafEvent;
  const entries = [
    { logId: "a", at: now },
    { logId: 1, at: "visitor's text" },
    { logId: "old", at: now - 30 * 86_400_000 },
    { logId: "b", at: now - 5 },
    { logId: "far", at: now + 30 * 86_400_000 },
  ];
  const opened = openPage(Buffer.from(JSON.stringify({ logs: entries })), "logs");
  const source = { route: "list", schema, toEvent, day: "2026-11-20", accepted: acceptedAt(now) } as const;
  const page = preparePage(opened, source);
  expect(page.events.map(({ logId }) => logId)).toEqual(["a", "b"]);
  expect(page.records.map(String)).toEqual([entries[0], entries[3]].map((entry) => JSON.stringify(entry)));
  expect([page.firstAt, page.lastAt]).toEqual([now - 5, now]);
  expect(page.quarantined.map(({ reason }) => reason)).toEqual([
    "unreadable: logId: invalid_type; at: invalid_type",
    "timestamp: before 2026-11-10T12:00:00.000Z",
    "timestamp: not before 2026-11-22T12:00:00.000Z",
  ]);
  expect(page.quarantined.map(({ raw }) => raw.toString())).toEqual(
    [entries[1], entries[2], entries[4]].map((entry) => JSON.stringify(entry)),
  );
});

test("a page without events has no times", () => {
  const source = {
    route: "search",
    schema: z.never(),
    toEvent: (event: WafEvent) => event,
    day: null,
  } as const;
  const opened = openPage(Buffer.from('{"rows":[null,1]}'), "rows");
  const page = preparePage(opened, { ...source, accepted: acceptedAt(0) });
  expect(page).toMatchObject({ events: [], records: [], firstAt: null, lastAt: null });
  expect(page.quarantined).toHaveLength(2);
});
