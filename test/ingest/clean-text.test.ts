import fc from "fast-check";
import { expect, test } from "vitest";
import { cleanText } from "#lib/text.ts";

const anyText = fc.string({ unit: "binary", maxLength: 60 });
const hostile = fc
  .array(fc.oneof(anyText, fc.constantFrom("\0", "\ud800", "\udc00", "😀", "\u202e", "…")), { maxLength: 12 })
  .map((parts) => parts.join(""));

test("a cleaned text can be stored, is no longer than the limit, and does not change when cleaned again", () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 2, max: 40 }), (text, cap) => {
      const clean = cleanText(text, cap);
      expect(clean.includes("\0")).toBe(false);
      expect(clean.isWellFormed()).toBe(true);
      expect(clean.length).toBeLessThanOrEqual(cap);
      expect(cleanText(clean, cap)).toBe(clean);
    }),
    { numRuns: 500 },
  );
});

test("texts that differ after cleaning differ in UTF-8", () => {
  const half = fc.constantFrom("\ud800", "\ud801", "\udfff", "\uFFFD", "\0", "a", "😀");
  fc.assert(
    fc.property(half, half, (a, b) => {
      const [one, other] = [cleanText(a, 10), cleanText(b, 10)];
      expect(Buffer.from(one).equals(Buffer.from(other))).toBe(one === other);
    }),
  );
});

test("text that can be stored and fits is left as it is", () => {
  const storable = fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(storable, (text) => {
      expect(cleanText(text, Math.max(1, text.length))).toBe(text);
    }),
  );
});

test.each([
  ["abcdef", 4, "abc…"],
  ["abc😀def", 5, "abc…"],
  ["ab😀def", 5, "ab😀…"],
  ["a\0b", 3, "a\uFFFDb"],
  ["a\ud83d", 2, "a\uFFFD"],
  ["", 2, ""],
])("%j cut at %i is %j", (text, cap, expected) => {
  expect(cleanText(text, cap)).toBe(expected);
});
