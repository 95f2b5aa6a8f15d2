import { expect, test } from "vitest";
import { watchPageOrder } from "#ingest/rules/plan-pass.ts";

type Pages = readonly (readonly [firstAt: number, lastAt: number] | null)[];

test.each<[string, boolean, Pages, boolean]>([
  ["one page shows no order", false, [[1, 5]], false],
  [
    "pages that rise come oldest first",
    false,
    [
      [1, 5],
      [6, 9],
    ],
    true,
  ],
  [
    "a late entry in a later page changes nothing",
    false,
    [
      [1, 5],
      [3, 9],
    ],
    true,
  ],
  ["empty pages show nothing", false, [null, [1, 5], null], false],
  [
    "pages that fall come newest first",
    false,
    [
      [6, 9],
      [1, 5],
    ],
    false,
  ],
  [
    "one page that falls is enough to doubt the order",
    false,
    [
      [1, 5],
      [6, 9],
      [2, 4],
    ],
    false,
  ],
  ["a known order needs no second page", true, [[6, 9]], true],
  [
    "a known order is doubted when a page falls",
    true,
    [
      [6, 9],
      [1, 5],
    ],
    false,
  ],
])("%s", (_what, isKnown, pages, isOldestFirst) => {
  const order = watchPageOrder(isKnown);
  for (const page of pages) order.add({ firstAt: page?.[0] ?? null, lastAt: page?.[1] ?? null });
  expect(order.isOldestFirst()).toBe(isOldestFirst);
});
