import { describe, expect, it } from "vitest";
import { type DaySpan, planSpans } from "#archive/rules/query/plan-search.ts";
import { createOpenedBlocks, findRecords } from "#archive/rules/records/find-records.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, hashZoneEventKey } from "#model/waf-event.ts";

const DAY = Date.UTC(2026, 10, 20);

interface StoredBlock {
  readonly zoneId: number;
  readonly day: string;
  readonly blockId: string;
  readonly version: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly logIdHashes: Buffer;
  readonly block: Buffer;
}

function eventAt(minute: number) {
  return { zoneId: 101, occurredAt: DAY + minute * MINUTE_MS, logId: `event-${minute}` };
}

const recordOf = (minute: number, text = "") => Buffer.from(`{"n":${minute},"x":",\\n]"${text}}`);

/** One block over the events of these minutes. */
async function blockOf(blockId: string, minutes: readonly number[], text = ""): Promise<StoredBlock> {
  const [packed] = await packRawBlocks(
    minutes.map((minute) => {
      const event = eventAt(minute);
      return { ...event, logIdHash: hashEventKey(event), raw: recordOf(minute, text) };
    }),
  );
  if (packed === undefined) throw new Error("nothing to pack");
  return { ...packed, zoneId: 101, blockId, version: "1" };
}

/** Blocks in memory that record which of them were read. */
function storeOf(blocks: StoredBlock[]) {
  const read: string[] = [];
  return {
    read,
    blocks,
    async findBlocks(spans: readonly DaySpan[]) {
      return blocks.filter(({ day, firstAt, lastAt }) =>
        spans.some((span) => span.day === day && firstAt <= span.toMs && lastAt >= span.fromMs),
      );
    },
    async readBlocks(wanted: readonly { blockId: string }[]) {
      const ids = wanted.map(({ blockId }) => blockId);
      read.push(...ids);
      return new Map(blocks.filter(({ blockId }) => ids.includes(blockId)).map((b) => [b.blockId, b.block]));
    },
  };
}

function textsOf(records: ReadonlyMap<string, Buffer>, minutes: readonly number[]) {
  return minutes.map((minute) => records.get(hashZoneEventKey(eventAt(minute)))?.toString());
}

describe("the records of events", () => {
  it("come byte for byte, and only blocks that hold one of them are read, once", async () => {
    const store = storeOf([
      await blockOf("a", [0, 1, 2]),
      await blockOf("b", [1.5, 3]),
      await blockOf("c", [10, 11]),
    ]);
    const opened = createOpenedBlocks(1_000_000);
    const wanted = [2, 0, 11, 99];
    const records = await findRecords(store, opened, wanted.map(eventAt));
    expect(textsOf(records, wanted)).toEqual([
      recordOf(2).toString(),
      recordOf(0).toString(),
      recordOf(11).toString(),
      undefined,
    ]);
    expect(store.read.toSorted()).toEqual(["a", "c"]);
    await findRecords(store, opened, wanted.map(eventAt));
    expect(store.read.toSorted()).toEqual(["a", "c"]);
  });

  it("returns the record of the earlier block if an event is in two", async () => {
    const store = storeOf([await blockOf("a", [1], ',"first":1'), await blockOf("b", [1], ',"second":1')]);
    const records = await findRecords(store, createOpenedBlocks(1_000_000), [eventAt(1)]);
    expect(textsOf(records, [1])).toEqual([recordOf(1, ',"first":1').toString()]);
    expect(store.read).toEqual(["a"]);
  });

  it("are found also when blocks are merged between the two questions", async () => {
    const store = storeOf([await blockOf("a", [0]), await blockOf("b", [1])]);
    const merged = await blockOf("merged", [0, 1]);
    let isFirst = true;
    const records = await findRecords(
      {
        findBlocks: (spans) => store.findBlocks(spans),
        async readBlocks(wanted) {
          if (isFirst) store.blocks.splice(0, 2, merged);
          isFirst = false;
          return store.readBlocks(wanted);
        },
      },
      createOpenedBlocks(1_000_000),
      [0, 1].map(eventAt),
    );
    expect(textsOf(records, [0, 1])).toEqual([recordOf(0).toString(), recordOf(1).toString()]);
  });

  it("are looked for in few spans, none of which leaves its day", () => {
    const at = [DAY + 5, DAY + 30_000, DAY - 1, DAY + 200_000, DAY];
    expect(planSpans(at)).toEqual([
      { day: "2026-11-19", fromMs: DAY - 1, toMs: DAY - 1 },
      { day: "2026-11-20", fromMs: DAY, toMs: DAY + 30_000 },
      { day: "2026-11-20", fromMs: DAY + 200_000, toMs: DAY + 200_000 },
    ]);
  });
});

describe("opened blocks", () => {
  it("are kept up to their bound, those used last", async () => {
    const blocks = await Promise.all([0, 1, 2].map((n) => blockOf(`${n}`, [n])));
    const [any] = await createOpenedBlocks(0).open(
      { blockId: "any", version: "1" },
      (blocks[0] as StoredBlock).block,
    );
    const opened = createOpenedBlocks(2 * (any?.buffer.byteLength ?? 0));
    for (const block of blocks.slice(0, 2)) await opened.open(block, block.block);
    opened.get({ blockId: "0", version: "1" });
    for (const block of blocks.slice(2)) await opened.open(block, block.block);
    expect(blocks.map((block) => opened.get(block) !== undefined)).toEqual([true, false, true]);
  });

  it("hand out a block that is larger than their bound and keep none of it", async () => {
    const opened = createOpenedBlocks(1);
    const block = await blockOf("a", [0]);
    expect((await opened.open(block, block.block)).map(String)).toEqual([recordOf(0).toString()]);
    expect(opened.get(block)).toBeUndefined();
  });

  it("are of one state: after an erasure the one before it is not handed out", async () => {
    const opened = createOpenedBlocks(1_000_000);
    const block = await blockOf("a", [0]);
    await opened.open(block, block.block);
    expect(opened.get({ ...block, version: "2" })).toBeUndefined();
    expect(opened.get(block)).toBeUndefined();
  });

  it("do not open a damaged block", async () => {
    const { block, ...state } = await blockOf("a", [0]);
    block[block.length - 1] = (block.at(-1) ?? 0) ^ 1;
    await expect(createOpenedBlocks(1_000).open(state, block)).rejects.toThrow(/checksum|corrupt|data|zstd/i);
  });
});
