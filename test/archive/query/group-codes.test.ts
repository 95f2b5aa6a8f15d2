import fc from "fast-check";
import { expect, test } from "vitest";
import { type CodedEvents, groupCodes } from "../../../db/search/group-codes.ts";
import { createVarintWriter } from "../../../db/search/varints.ts";

interface Event {
  readonly at: number;
  readonly codes: readonly number[];
}

const texts = (sizes: readonly number[]) =>
  sizes.map((size, column) => Array.from({ length: size }, (_, code) => `${column}:${code}`));

/** As a day keeps them. */
function pack(events: readonly Event[]): CodedEvents {
  const codes = [0, 1, 2, 3, 4].map((column) => {
    const writer = createVarintWriter();
    for (const event of events) writer.write(event.codes[column] ?? 0);
    return writer.finish();
  });
  const times = Int32Array.from(events, ({ at }) => at);
  return { base: 1_000, times, codes, first: 0, end: events.length };
}

function countNaively(events: readonly Event[], grouped: readonly number[]) {
  const groups = Map.groupBy(events, ({ codes }) =>
    grouped.map((column) => `${column}:${codes[column]}`).join(),
  );
  return [...groups].map(([key, members]) => ({
    key,
    total: members.length,
    first: 1_000 + Math.min(...members.map(({ at }) => at)),
    last: 1_000 + Math.max(...members.map(({ at }) => at)),
  }));
}

const NOTHING = {
  totals: [],
  firsts: [],
  lasts: [],
  composites: [-1],
  toKey: () => ["nothing was found"],
};

const byKey = (one: { key: string }, other: { key: string }) => (one.key < other.key ? -1 : 1);

test.each([
  { name: "few possible groups", sizes: [3, 4, 5, 2, 3] },
  { name: "more possible groups than have a place each", sizes: [40, 300, 300, 20, 30] },
])("groups of codes are those of a naive count: $name", async ({ sizes }) => {
  const event = fc.record({
    at: fc.integer({ min: 0, max: 86_399_999 }),
    codes: fc.tuple(...sizes.map((size) => fc.integer({ min: 0, max: size - 1 }))),
  });
  const columns = fc.subarray([0, 1, 2, 3, 4], { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(event), fc.array(event), columns, async (one, other, grouped) => {
      const asked = sizes.map(() => null);
      const found = await groupCodes({ texts: texts(sizes), grouped, asked }, [pack(one), pack(other)]);
      const { totals, firsts, lasts, composites, toKey } = found?.groups ?? NOTHING;
      const groups = composites.map((composite, place) => ({
        key: toKey(composite).join(),
        total: totals[place],
        first: firsts[place],
        last: lasts[place],
      }));
      const wanted = countNaively([...one, ...other], grouped);
      expect(groups.sort(byKey)).toEqual(wanted.sort(byKey));
    }),
    { numRuns: 60 },
  );
});

test("more combinations than a number can tell apart are not grouped", async () => {
  const question = {
    texts: texts([2_000, 2_000, 2_000, 2_000, 2_000]),
    asked: [null, null, null, null, null],
  };
  expect(await groupCodes({ ...question, grouped: [0, 1, 2, 3, 4] }, [])).toBeNull();
  expect(await groupCodes({ ...question, grouped: [0, 1, 2, 3] }, [])).not.toBeNull();
});

test("a page whose counts would take too much memory is not counted", async () => {
  const many = texts([1, 1, 100_000, 1, 1]);
  const question = { texts: many, grouped: [2], asked: [null, null, null, null, null] };
  const found = await groupCodes(question, [pack([{ at: 1, codes: [0, 0, 7, 0, 0] }])]);
  expect(await found?.countPage([0], null)).not.toBeNull();
  expect(
    await found?.countPage(
      Array.from({ length: 100 }, () => 0),
      null,
    ),
  ).toBeNull();
});
