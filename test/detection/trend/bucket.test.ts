import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketEnd, bucketStart, bucketStarts } from "#detection/rules/detection-settings.ts";
import { BUCKET_WIDTHS } from "#model/kinds.ts";

const times = fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) });

test("a bucket holds its start and not its end", () => {
  const midnight = Date.UTC(2026, 1, 28);
  for (const width of BUCKET_WIDTHS) {
    expect(bucketStart(midnight, width)).toBe(midnight);
    expect(bucketStart(midnight - 1, width)).toBe(midnight - width * 1_000);
    expect(bucketEnd(midnight - 1, width)).toBe(midnight);
    expect(bucketEnd(midnight, width)).toBe(midnight + width * 1_000);
  }
});

test("every time lies in exactly one bucket, and coarse buckets are made of whole finer ones", () => {
  fc.assert(
    fc.property(times, fc.constantFrom(...BUCKET_WIDTHS), (time, width) => {
      const start = bucketStart(time, width);
      expect(start % (width * 1_000)).toBe(0);
      expect(start <= time && time < bucketEnd(time, width)).toBe(true);
      for (const coarser of BUCKET_WIDTHS.filter((other) => other >= width)) {
        expect(bucketStart(start, coarser)).toBe(bucketStart(time, coarser));
      }
    }),
  );
});

test("the buckets of a span are those that share a moment with it", () => {
  const at = (minute: number, second = 0) => Date.UTC(2026, 10, 20, 12, minute, second);
  expect([...bucketStarts(at(3, 59), at(5), 60)]).toEqual([at(3), at(4)]);
  expect([...bucketStarts(at(3), at(5, 1), 60)]).toEqual([at(3), at(4), at(5)]);
  expect([...bucketStarts(at(3, 30), at(3, 30), 60)]).toEqual([]);
});
