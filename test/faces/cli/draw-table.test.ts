import fc from "fast-check";
import { expect, test } from "vitest";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { drawTable } from "#faces/cli/terminal/print.ts";

const HEAD = ["ALERT", "SEVERITY", "STATE", "AGE", "SINCE (UTC)", "HEADLINE"];
const STATE = "firing, silenced until 2026-11-28 08:39:19, part of #36";
const HEADLINE = "SQL injection: rule 942100 in zone 101 is spiking, 4,521 events in 3 min";
const ROW = ["#3", "critical", STATE, "18 min", "2026-11-28 06:23", HEADLINE];

test("a row that is wider than the terminal goes on in a second line, whose last column is wrapped", () => {
  expect(drawTable(HEAD, [ROW], paintPlain, 80)).toBe(`ALERT   SEVERITY   STATE
  AGE      SINCE (UTC)        HEADLINE
#3      critical   ${STATE}
  18 min   2026-11-28 06:23   SQL injection: rule 942100 in zone 101 is spiking,
                              4,521 events in 3 min
`);
});

test("no width loses text, and no line with room for its columns is wider than the terminal", () => {
  const texts = fc.array(fc.stringMatching(/^[a-z]{1,30}( [a-z]{1,30}){0,20}$/), {
    minLength: 1,
    maxLength: 5,
  });
  fc.assert(
    fc.property(texts, fc.integer({ min: 80, max: 200 }), (headlines, width) => {
      const rows = headlines.map((headline) => [...ROW.slice(0, -1), headline]);
      const drawn = drawTable(HEAD, rows, paintPlain, width);
      expect(Math.max(...drawn.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width);
      for (const headline of headlines) expect(drawn.replaceAll(/\s+/g, " ")).toContain(headline);
    }),
  );
});

test("in a pipe each row is one line", () => {
  expect(drawTable(HEAD, [ROW], paintPlain).split("\n")).toHaveLength(3);
});
