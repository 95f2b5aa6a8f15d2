import zlib from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS } from "#lib/units.ts";
import { openRawBlock, packRawBlocks, type RawEntry } from "#model/raw-block.ts";
import { hashEventKey, unpackLogIdHashes } from "#model/waf-event.ts";

const MIDNIGHT = Date.UTC(2026, 10, 20);

function entry(raw: string | Buffer, occurredAt = MIDNIGHT): RawEntry {
  const bytes = typeof raw === "string" ? Buffer.from(raw) : raw;
  return { occurredAt, logIdHash: hashEventKey({ occurredAt, logId: bytes.toString("latin1") }), raw: bytes };
}

/** An entry as a platform may spell it: any JSON value, with any blanks inside. */
const anyEntry = fc
  .tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), fc.integer({ min: -DAY_MS, max: DAY_MS }))
  .map(([value, space, at]) => entry(JSON.stringify(value, null, space), MIDNIGHT + at));

test("every entry comes out of the blocks of its day, byte for byte and in the order it went in", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyEntry), async (entries) => {
      const blocks = await packRawBlocks(entries);
      const days = new Map<string, Buffer[]>();
      for (const { day, block, entryCount, logIdHashes } of blocks) {
        const opened = await openRawBlock(block);
        expect(opened).toHaveLength(entryCount);
        expect(await openRawBlock(block, entryCount)).toEqual(opened);
        expect(unpackLogIdHashes(logIdHashes)).toHaveLength(entryCount);
        days.set(day, [...(days.get(day) ?? []), ...opened]);
      }
      const expected = new Map<string, Buffer[]>();
      for (const { occurredAt, raw } of entries) {
        const day = new Date(occurredAt).toISOString().slice(0, 10);
        expected.set(day, [...(expected.get(day) ?? []), raw]);
      }
      expect(days).toEqual(expected);
    }),
  );
});

test("a block has the time range and the ids of its entries, in any order", async () => {
  const entries = [entry(`{"a":1}`, MIDNIGHT + 5), entry(`{"b":2}`, MIDNIGHT + 1), entry("3", MIDNIGHT + 9)];
  const [block, ...others] = await packRawBlocks(entries);
  expect(others).toEqual([]);
  expect(block).toMatchObject({
    day: "2026-11-20",
    firstAt: MIDNIGHT + 1,
    lastAt: MIDNIGHT + 9,
    entryCount: 3,
  });
  expect(unpackLogIdHashes(block?.logIdHashes ?? Buffer.alloc(0))).toEqual(
    entries.map((one) => one.logIdHash),
  );
});

test("bytes that are no UTF-8 are kept as they are", async () => {
  const raw = Buffer.concat([
    Buffer.from(`{"url":"`),
    Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x80]),
    Buffer.from(`"}`),
  ]);
  const [block] = await packRawBlocks([entry("1"), entry(raw), entry("2")]);
  expect((await openRawBlock(block?.block ?? Buffer.alloc(0)))[1]).toEqual(raw);
});

test("an entry of many megabytes has its block, and the next one does not share it", async () => {
  const huge = entry(JSON.stringify({ body: "x]},".repeat(4_000_000) }));
  const blocks = await packRawBlocks([entry("1"), huge, entry("2")]);
  expect(blocks.map(({ entryCount }) => entryCount)).toEqual([2, 1]);
  expect((await openRawBlock(blocks[0]?.block ?? Buffer.alloc(0)))[1]?.equals(huge.raw)).toBe(true);
});

test("no entries make no block", async () => {
  expect(await packRawBlocks([])).toEqual([]);
});

test("a block holds no more than a megabyte of entries, so that a single record opens fast", async () => {
  const entries = Array.from({ length: 3_000 }, (_, n) =>
    entry(JSON.stringify({ n, text: "x".repeat(990) })),
  );
  const blocks = await packRawBlocks(entries);
  expect(Math.max(...blocks.map(({ entryCount }) => entryCount))).toBeLessThanOrEqual(530);
});

test("a block that is damaged or cut anywhere does not open as something else", async () => {
  const entries = Array.from({ length: 40 }, (_, n) =>
    entry(JSON.stringify({ n, id: hashEventKey({ occurredAt: n, logId: `${n}` }) })),
  );
  const { block } = (await packRawBlocks(entries))[0] ?? { block: Buffer.alloc(0) };
  const records = entries.map(({ raw }) => raw.toString());
  const readable = async (bytes: Buffer) => {
    try {
      return (await openRawBlock(bytes)).map(String);
    } catch {
      return null;
    }
  };
  expect(await readable(block)).toEqual(records);
  for (let at = 0; at < block.length; at += 3) {
    const damaged = Buffer.from(block);
    damaged[at] = (damaged[at] ?? 0) ^ 0x10;
    // A bit that no decoder looks at may change nothing; it must never change a record.
    expect([JSON.stringify(records), "null"]).toContain(JSON.stringify(await readable(damaged)));
    expect(await readable(block.subarray(0, at))).toBeNull();
  }
});

test("blocks that were written without a checksum still open", async () => {
  expect((await openRawBlock(zlib.zstdCompressSync(Buffer.from("[1,\n2]")))).map(String)).toEqual(["1", "2"]);
});
