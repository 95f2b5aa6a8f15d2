import fc from "fast-check";
import { expect, test } from "vitest";
import { createProgressLine, renderProgress } from "#lib/progress-bar.ts";

function recorder(form: { isTTY?: boolean; columns?: number } = {}) {
  let text = "";
  return {
    stream: { ...form, write: (piece: string) => (text += piece) },
    text: () => text,
    clear: () => {
      text = "";
    },
  };
}

test("a bar says how far, how much of how much, how fast and how long still", () => {
  expect(renderProgress({ done: 124_312, total: 238_860, rate: 11_240.4 })).toBe(
    "██████████░░░░░░░░░░   52 %  124,312 of 238,860 events  11,240/s  11 s left",
  );
});

test.each<[string, Parameters<typeof renderProgress>[0], string]>([
  ["nothing yet", { done: 0, total: 10, rate: 0 }, "░░░░░░░░░░░░░░░░░░░░    0 %  0 of 10 events  0/s"],
  ["an unknown total", { done: 50, total: 0, rate: 5 }, "░░░░░░░░░░░░░░░░░░░░    0 %  50 of 50 events  5/s"],
  ["zero of zero", { done: 0, total: 0, rate: 0 }, "░░░░░░░░░░░░░░░░░░░░    0 %  0 of 0 events  0/s"],
  [
    "everything and more, which is not yet the end",
    { done: 12, total: 10, rate: 1 },
    "███████████████████░   99 %  12 of 12 events  1/s  0 s left",
  ],
  [
    "minutes",
    { done: 0, total: 9_000, rate: 100 },
    "░░░░░░░░░░░░░░░░░░░░    0 %  0 of 9,000 events  100/s  2 min left",
  ],
])("%s", (_what, progress, expected) => {
  expect(renderProgress(progress)).toBe(expected);
});

test("the bar is always as wide, never full, and never less for more done", () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.nat(1_000_000), fc.nat(1_000), (done, total, more) => {
      const filled = (text: string) => text.split("█").length - 1;
      const text = renderProgress({ done, total, rate: 10 });
      expect(text.slice(0, 20)).toMatch(/^█*░+$/);
      expect(filled(renderProgress({ done: done + more, total, rate: 10 }))).toBeGreaterThanOrEqual(
        filled(text),
      );
    }),
  );
});

test("on a terminal each update draws over the last, and the end takes the line away", () => {
  const { stream, text } = recorder({ isTTY: true, columns: 100 });
  const line = createProgressLine(stream);
  line.update("a long line");
  line.update("short");
  line.clear();
  expect(text()).toBe("\ra long line\u001b[K\rshort\u001b[K\r\u001b[K");
});

test("other output is printed above the progress line, which is drawn again below it", () => {
  const { stream, text } = recorder({ isTTY: true, columns: 100 });
  const line = createProgressLine(stream);
  expect(line.above(() => stream.write("before any\n"))).toBe("before any\n");
  line.update("half");
  line.above(() => stream.write("a log line\n"));
  line.clear();
  line.above(() => stream.write("after\n"));
  expect(text()).toBe("before any\n\rhalf\u001b[K\r\u001b[Ka log line\n\rhalf\u001b[K\r\u001b[Kafter\n");
});

test("a line never wraps, however narrow the terminal becomes", () => {
  const { stream, text, clear } = recorder({ isTTY: true });
  const widest = renderProgress({ done: 123_456_789, total: 223_456_789, rate: 123_456 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 120 }), (columns) => {
      clear();
      createProgressLine(Object.assign(stream, { columns })).update(widest);
      expect(text().replace(/^\r/, "").replace("\u001b[K", "").length).toBeLessThan(columns);
    }),
  );
});

test("elsewhere it prints plain lines, one per period and none of short work, and nothing at the end", () => {
  const { stream, text } = recorder();
  let now = 0;
  const line = createProgressLine(stream, () => now);
  for (; now < 12_000; now += 500) line.update(`at ${now}`);
  line.clear();
  expect(text()).toBe("at 5000\nat 10000\n");
});
