import { expect, test } from "vitest";
import { reflow } from "#faces/cli/terminal/help.ts";

const TEXT = `
What a paragraph says goes over
several lines.

The parts are:
  sealed     proven complete: read twice, and nothing new since
  not known  short

Examples:
  npm run -s longwatch -- coverage --zone 101 --from 2026-11-01
  npm run -s longwatch -- coverage`;

test("paragraphs and the second column of lists are filled, examples stay whole", () => {
  expect(reflow(TEXT, 44)).toBe(`
What a paragraph says goes over several
lines.

The parts are:
  sealed     proven complete: read twice,
             and nothing new since
  not known  short

Examples:
  npm run -s longwatch -- coverage --zone 101 --from 2026-11-01
  npm run -s longwatch -- coverage`);
});

test("where there is room, nothing is broken", () => {
  expect(reflow(TEXT, 200)).toBe(TEXT.replace("over\nseveral", "over several"));
});

test("a terminal that is hardly there still gets words", () => {
  expect(reflow("one two three four five six seven eight nine ten", 3)).toBe(
    "one two three four five six seven eight\nnine ten",
  );
});
