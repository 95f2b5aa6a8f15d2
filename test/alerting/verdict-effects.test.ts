import fc from "fast-check";
import { expect, test } from "vitest";
import { LOWERING_VERDICTS, SEVERITIES, VERDICT_CLASSES, VERDICTS, type VerdictWord } from "#model/kinds.ts";
import { isGraver } from "#model/severity.ts";
import { gradeByVerdicts } from "#stages/alerting/verdict-effects.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { alertSpike } from "./support.ts";

const judged = fc.record({
  said: fc.constantFrom(...VERDICTS),
  likeliest: fc.constantFrom(...VERDICT_CLASSES),
  odds: fc.double({ min: 0, max: 0.95, noNaN: true }),
  isLasting: fc.boolean(),
});
const verdicts = fc.array(judged, { maxLength: 4 }).map((all) => all.map((one) => verdictOf(one)));
const severity = fc.constantFrom(...SEVERITIES);
const severityOf = (
  said: VerdictWord,
  addresses: number,
  lower: readonly (typeof LOWERING_VERDICTS)[number][],
) => {
  const verdict = verdictOf({ said, odds: 0.8, counts: { ...verdictOf().counts, addresses } });
  return gradeByVerdicts(alertSpike({ severity: "critical" }), [verdict], { raise: true, lower }).severity;
};

test("no verdicts lower a severity unless the configuration says so", () => {
  fc.assert(
    fc.property(verdicts, severity, fc.boolean(), (given, before, raise) => {
      const after = gradeByVerdicts(alertSpike({ severity: before }), given, { raise, lower: [] }).severity;
      expect(isGraver(before, after)).toBe(false);
    }),
  );
});

test("a misfire never changes a severity, whatever the configuration says", () => {
  fc.assert(
    fc.property(severity, fc.boolean(), (before, isLasting) => {
      const verdict = verdictOf({ said: "misfire", likeliest: "misfire", isLasting, odds: 0.95 });
      const effects = { raise: true, lower: LOWERING_VERDICTS };
      expect(gradeByVerdicts(alertSpike({ severity: before }), [verdict], effects).severity).toBe(before);
    }),
  );
});

test.each([
  ["warning", 0.9, true, "critical"],
  ["error", 0.9, true, "critical"],
  ["warning", 0.89, true, "warning"],
  ["warning", 0.95, false, "warning"],
  ["info", 0.95, true, "info"],
] as const)("a %s whose verdict is an attack with odds %d, raise %s, is %s", (before, odds, raise, after) => {
  const spike = alertSpike({ severity: before });
  expect(gradeByVerdicts(spike, [verdictOf({ odds })], { raise, lower: [] }).severity).toBe(after);
});

test("a severity that was raised stays raised when a later look is less certain", () => {
  const looks = [verdictOf(), verdictOf({ look: "half-hour", said: "scanner" })];
  const effects = { raise: true, lower: LOWERING_VERDICTS };
  expect(gradeByVerdicts(alertSpike(), looks, effects).severity).toBe("critical");
});

test.each(VERDICTS)("%s lowers a critical alert only if it may and is named", (said) => {
  const isNamed = LOWERING_VERDICTS.some((one) => one === said);
  expect(severityOf(said, 3, [])).toBe("critical");
  expect(severityOf(said, 3, LOWERING_VERDICTS)).toBe(isNamed ? "warning" : "critical");
  const others = LOWERING_VERDICTS.filter((one) => one !== said);
  expect(severityOf(said, 3, others)).toBe("critical");
});

test("a broken client of 12 addresses is not lowered, and a scanner is", () => {
  expect(severityOf("broken-client", 11, ["broken-client"])).toBe("warning");
  expect(severityOf("broken-client", 12, ["broken-client"])).toBe("critical");
  expect(severityOf("scanner", 12, ["scanner"])).toBe("warning");
});
