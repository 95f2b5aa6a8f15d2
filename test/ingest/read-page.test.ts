import { expect, test } from "vitest";
import { z } from "zod";
import { readBy, readPage } from "#ingest/rules/read-page.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { openList } from "#platform/transport/exchange.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const schema = z.object({ logId: z.union([z.string(), z.int().transform(String)]), at: z.number() });
const toEvent = ({ logId, at }: z.output<typeof schema>) => ({ logId, occurredAt: at }) as WafEvent;
const source = {
  route: "list",
  day: "2026-11-20",
  receivedAt: NOW,
  hashKey: "key",
  reader: readBy(schema, toEvent),
} as const;

function read(text: string) {
  return readPage(openList(Buffer.from(text), "logs").entries, source);
}

test("each event keeps its own record, and each refused entry its reason and bytes", () => {
  const entries = [
    { logId: "a", at: NOW },
    { logId: null, at: "visitor's text" },
    { logId: "old", at: NOW - 30 * 86_400_000 },
    { logId: "b", at: NOW - 5 },
    { logId: "far", at: NOW + 30 * 86_400_000 },
    { logId: "yesterday", at: NOW - 86_400_000 },
  ];
  const page = read(JSON.stringify({ logs: entries }));
  expect(page.events.map(({ logId }) => logId)).toEqual(["a", "b"]);
  expect(page.records.map(({ raw }) => String(raw))).toEqual(
    [entries[0], entries[3]].map((entry) => JSON.stringify(entry)),
  );
  expect(page.quarantined.map(({ reason }) => reason)).toEqual([
    "unreadable: logId: invalid_union; at: invalid_type",
    "timestamp: before 2026-11-10T12:00:00.000Z",
    "timestamp: not before 2026-11-22T12:00:00.000Z",
    "timestamp: outside the day of its list",
  ]);
  expect(page.quarantined.map(({ raw }) => raw.toString())).toEqual(
    [entries[1], entries[2], entries[4], entries[5]].map((entry) => JSON.stringify(entry)),
  );
});

test("a page with another list, spaces, a mark within a text or the list twice is cut at its entries", () => {
  const one = `{"logId":"},{","at":${NOW},"in":{"logs":[{}]}}`;
  const two = `{ "logId" : "]}" , "at" : ${NOW} }`;
  for (const text of [
    `{"more":[{"logs":1},{}],"logs":[${one},${two}]}`,
    `\uFEFF{ "logs" : [ ${one}\n, ${two} ] , "more" : [{}] }`,
    `{"logs":[{}],"logs":[${one},${two}]}`,
  ])
    expect(read(text).records.map(({ raw }) => String(raw))).toEqual([one, two]);
});

test("an id beyond 2^53 keeps every digit, and its record every byte", () => {
  const entry = `{"logId":12345678901234567890,"at":${NOW}}`;
  const page = read(`{"logs":[${entry}]}`);
  expect(page.events.map(({ logId }) => logId)).toEqual(["12345678901234567890"]);
  expect(page.records.map(({ raw }) => String(raw))).toEqual([entry]);
});

test("bytes that are no UTF-8 are kept in the record and in the quarantine", () => {
  const bad = Buffer.from([0xc3, 0x22, 0xff]);
  const entry = (id: Buffer, at: number) =>
    Buffer.concat([Buffer.from('{"logId":"'), id, Buffer.from(`","at":${at}}`)]);
  // The first byte of a two-byte character, behind which the text ends.
  const entries = [entry(bad.subarray(0, 1), NOW), entry(bad.subarray(2), 0)];
  const body = Buffer.concat([
    Buffer.from('{"logs":['),
    entries[0] ?? bad,
    Buffer.from(","),
    entries[1] ?? bad,
    Buffer.from("]}"),
  ]);
  const page = readPage(openList(body, "logs").entries, source);
  expect(page.records.map(({ raw }) => raw)).toEqual([entries[0]]);
  expect(page.quarantined.map(({ raw }) => raw)).toEqual([entries[1]]);
});

test("a page without events has no records", () => {
  const page = read('{"logs":[null,1]}');
  expect(page).toMatchObject({ events: [], records: [] });
  expect(page.quarantined).toHaveLength(2);
});
