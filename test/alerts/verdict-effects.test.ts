import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AlertSpike } from "#alerts/rules/alert-spike.ts";
import { gradeByVerdict, isTroublesome } from "#alerts/rules/verdict-effects.ts";
import { MINUTE_MS } from "#lib/units.ts";
import {
  CHANGE_KINDS,
  LOWERING_VERDICTS,
  SEVERITIES,
  type Severity,
  type SpikeKind,
  VERDICT_CLASSES,
  VERDICTS,
  type VerdictFeature,
} from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { isGraver } from "#model/words.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { alertSpike } from "./support.ts";

type Counts = Partial<StoredVerdict["counts"]>;
type Given = Partial<Omit<StoredVerdict, "counts" | "features">> & {
  readonly counts?: Counts;
  readonly values?: Partial<Record<VerdictFeature, number | null>>;
};

/** Nothing of it is new in the zone: the networks and fingerprints are usual, and no request holds an idiom. */
const KNOWN = { usualAsn: 1, usualJa4: 1, idiom: 0, session: 0 };

function judged({ counts, values = {}, ...over }: Given = {}): StoredVerdict {
  const { likeliest = "attack", odds = 0.93 } = over;
  const classes = { ...NO_CLASSES, misfire: 1 - odds, [likeliest]: odds };
  const verdict = verdictOf({ judgedAt: JUDGED, since: JUDGED - 10 * MINUTE_MS, classes, ...over });
  const features = { ...verdict.features };
  for (const [name, value] of Object.entries({ ...KNOWN, ...values }))
    features[name as VerdictFeature] = { value, adds: 0 };
  return { ...verdict, features, counts: { ...verdict.counts, ...counts } };
}

/** The severities that alerts of each severity get. */
function gradesOf(
  kind: SpikeKind,
  verdicts: readonly StoredVerdict[],
  over: Partial<AlertSpike> = {},
): string {
  return SEVERITIES.map((severity) => {
    const spike = alertSpike({ ...over, kind, severity });
    return gradeByVerdict(spike, verdicts).severity;
  }).join(" ");
}

const AS_IT_IS = SEVERITIES.join(" ");
const AT_LEAST_WARNING = "warning warning error critical";
const WARNING = "warning warning warning warning";
const AT_MOST_WARNING = "info warning warning warning";
const WARNING_TO_ERROR = "warning warning error error";
const AT_MOST_ERROR = "info warning error error";
const CRITICAL = "critical critical critical critical";
const AT_LEAST_ERROR = "error error error critical";
const INFO = "info info info info";
const ERROR = "error error error error";
const JUDGED = Date.UTC(2026, 10, 21, 14);
const THROUGH = { injectedThrough: 20, blocked: 1 };
const NO_CLASSES = { attack: 0, misfire: 0, scanner: 0, "broken-client": 0, crawler: 0 };
const DAILY = { background: { events: 0, perHour: 2.1 } };
const ALONE = { counts: { addresses: 11 } };
const MANY = { counts: { addresses: 12 } };
const BEYOND_DOUBT = { score: 5 };
const DOUBTFUL = { score: 4.99 };

type Row = readonly [
  what: string,
  Given | null,
  Partial<AlertSpike>,
  rule: string,
  newRule: string,
  incident: string,
];

describe("a verdict grades a rule's spike, a new rule and an incident", () => {
  test.each<Row>([
    ["no verdict", null, {}, AS_IT_IS, AS_IT_IS, AS_IT_IS],
    ["a sure attack of 12 addresses beyond doubt", MANY, BEYOND_DOUBT, CRITICAL, AT_LEAST_ERROR, CRITICAL],
    [
      "a sure attack of 11 addresses beyond doubt",
      ALONE,
      BEYOND_DOUBT,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
      CRITICAL,
    ],
    [
      "a sure attack of no address that is known",
      { counts: { addresses: 0 } },
      BEYOND_DOUBT,
      CRITICAL,
      AT_LEAST_ERROR,
      CRITICAL,
    ],
    ["a sure attack that is not beyond doubt", MANY, DOUBTFUL, AT_LEAST_WARNING, AT_LEAST_WARNING, CRITICAL],
    [
      "a sure attack of new networks",
      { ...MANY, values: { usualAsn: 0.49 } },
      DOUBTFUL,
      CRITICAL,
      AT_LEAST_ERROR,
      CRITICAL,
    ],
    [
      "a sure attack of half new networks",
      { ...MANY, values: { usualAsn: 0.5 } },
      DOUBTFUL,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      CRITICAL,
    ],
    [
      "a sure attack of new fingerprints",
      { ...MANY, values: { usualJa4: 0.49 } },
      DOUBTFUL,
      CRITICAL,
      AT_LEAST_ERROR,
      CRITICAL,
    ],
    [
      "a sure attack with idioms",
      { ...MANY, values: { idiom: 0.21 } },
      DOUBTFUL,
      CRITICAL,
      AT_LEAST_ERROR,
      CRITICAL,
    ],
    [
      "a sure attack with few idioms",
      { ...MANY, values: { idiom: 0.2 } },
      DOUBTFUL,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      CRITICAL,
    ],
    [
      "a sure attack of which nothing is known",
      { ...MANY, values: { usualAsn: null, usualJa4: null, idiom: null } },
      DOUBTFUL,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      CRITICAL,
    ],
    [
      "an attack of odds .89",
      { ...MANY, odds: 0.89 },
      BEYOND_DOUBT,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
    ],
    [
      "an attack of odds .75",
      { ...MANY, odds: 0.75 },
      BEYOND_DOUBT,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
    ],
    [
      "an attack of odds .74",
      { ...MANY, odds: 0.74 },
      BEYOND_DOUBT,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "a scanner of odds .74",
      { ...MANY, said: "scanner", odds: 0.74 },
      BEYOND_DOUBT,
      WARNING,
      WARNING,
      AT_MOST_ERROR,
    ],
    [
      "a misfire",
      { ...MANY, said: "misfire" },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
    ],
    [
      "a crawler",
      { ...MANY, said: "crawler" },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
    ],
    [
      "a broken client",
      { ...ALONE, said: "broken-client" },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
    ],
    [
      "a broken client of 12 new addresses",
      { ...MANY, said: "broken-client", values: { usualAsn: 0 } },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_ERROR,
    ],
    [
      "a sure broken client of 12 addresses of usual networks",
      { ...MANY, said: "broken-client" },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
    ],
    [
      "a sure broken client of 12 addresses with sessions",
      { ...MANY, said: "broken-client", values: { usualAsn: 0, session: 0.5 } },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
    ],
    [
      "a likely broken client of 12 addresses of usual networks",
      { ...MANY, said: "broken-client", odds: 0.89 },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_ERROR,
    ],
    [
      "an attack of odds .4, to which those of a scan make .75",
      { ...MANY, odds: 0.4, classes: { ...NO_CLASSES, attack: 0.4, scanner: 0.35 } },
      BEYOND_DOUBT,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
    ],
    ["a scanner", { ...MANY, said: "scanner" }, BEYOND_DOUBT, WARNING, WARNING, AS_IT_IS],
    [
      "a scanner of 11 addresses, 20 of whose injections got through",
      { said: "scanner", odds: 0.69, counts: { ...ALONE.counts, ...THROUGH } },
      DOUBTFUL,
      ERROR,
      ERROR,
      AT_MOST_ERROR,
    ],
    [
      "a scanner of 11 addresses, 19 of whose injections got through",
      { said: "scanner", odds: 0.69, counts: { ...ALONE.counts, ...THROUGH, injectedThrough: 19 } },
      DOUBTFUL,
      WARNING,
      WARNING,
      AT_MOST_ERROR,
    ],
    [
      "a scanner of 11 addresses, 39 of whose injections got through where nothing is stopped",
      { said: "scanner", counts: { ...ALONE.counts, ...THROUGH, injectedThrough: 39, blocked: 0 } },
      DOUBTFUL,
      WARNING,
      WARNING,
      AS_IT_IS,
    ],
    [
      "a scanner of 11 addresses, 20 of whose injections got through in 20 minutes",
      { said: "scanner", counts: { ...ALONE.counts, ...THROUGH }, since: JUDGED - 20 * MINUTE_MS },
      DOUBTFUL,
      WARNING,
      WARNING,
      AS_IT_IS,
    ],
    [
      "a scanner of 12 addresses, 20 of whose injections got through",
      { said: "scanner", counts: { ...MANY.counts, ...THROUGH } },
      DOUBTFUL,
      AT_LEAST_ERROR,
      AT_LEAST_ERROR,
      AS_IT_IS,
    ],
    [
      "a likely attack of 11 addresses, 20 of whose injections got through",
      { odds: 0.75, counts: { ...ALONE.counts, ...THROUGH } },
      DOUBTFUL,
      ERROR,
      ERROR,
      AT_LEAST_WARNING,
    ],
    [
      "a likely attack of 12 addresses, 20 of whose injections got through",
      { odds: 0.75, counts: { ...MANY.counts, ...THROUGH } },
      DOUBTFUL,
      AT_LEAST_ERROR,
      AT_LEAST_ERROR,
      AT_LEAST_WARNING,
    ],
    [
      "a misfire, 20 of whose injections got through",
      { said: "misfire", counts: { ...MANY.counts, ...THROUGH } },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
    ],
    [
      "an attack of odds .74, everyday",
      { ...DAILY, odds: 0.74 },
      DOUBTFUL,
      INFO,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "an attack of odds .74, everyday and beyond doubt",
      { ...DAILY, odds: 0.74 },
      BEYOND_DOUBT,
      WARNING,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "an attack of odds .65 with scans, everyday but for 20 injections that got through",
      { ...DAILY, counts: THROUGH, odds: 0.5, classes: { ...NO_CLASSES, attack: 0.5, scanner: 0.15 } },
      DOUBTFUL,
      ERROR,
      ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "an attack of odds .64 with scans, 20 of whose injections got through",
      { ...DAILY, counts: THROUGH, odds: 0.5, classes: { ...NO_CLASSES, attack: 0.5, scanner: 0.14 } },
      DOUBTFUL,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "an attack of odds .74 with idioms, which the rule had before",
      { ...DAILY, odds: 0.74, values: { idiom: 1 } },
      DOUBTFUL,
      INFO,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "an attack of odds .74 with idioms, which the rule hardly had before",
      { odds: 0.74, values: { idiom: 1 }, background: { events: 0, perHour: 2 } },
      DOUBTFUL,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "a sure attack with idioms, which the rule had before",
      { ...DAILY, ...MANY, values: { idiom: 1 } },
      DOUBTFUL,
      AT_LEAST_WARNING,
      AT_LEAST_WARNING,
      CRITICAL,
    ],
    ["a scanner, everyday", { ...DAILY, said: "scanner" }, DOUBTFUL, INFO, WARNING, AS_IT_IS],
    [
      "an attack of odds .74 in a zone of which nothing is known to be usual",
      { ...DAILY, odds: 0.74, values: { usualAsn: null, usualJa4: null } },
      DOUBTFUL,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
      WARNING_TO_ERROR,
    ],
    [
      "an unclear verdict, most like an attack, everyday",
      { ...DAILY, said: "unclear", odds: 0.4 },
      DOUBTFUL,
      INFO,
      WARNING,
      AT_MOST_ERROR,
    ],
    [
      "an unclear verdict, most like an attack",
      { ...MANY, said: "unclear" },
      BEYOND_DOUBT,
      WARNING,
      WARNING,
      AT_MOST_ERROR,
    ],
    [
      "an unclear verdict, most like a scanner",
      { ...MANY, said: "unclear", likeliest: "scanner" },
      BEYOND_DOUBT,
      WARNING,
      WARNING,
      AT_MOST_ERROR,
    ],
    [
      "an unclear verdict, most like a misfire",
      { ...MANY, said: "unclear", likeliest: "misfire" },
      BEYOND_DOUBT,
      AT_MOST_WARNING,
      AT_MOST_WARNING,
      AT_MOST_ERROR,
    ],
  ])("%s", (_what, given, over, rule, newRule, incident) => {
    const verdicts = given === null ? [] : [judged(given)];
    expect(gradesOf("spike", verdicts, over)).toBe(rule);
    expect(gradesOf("new-rule", verdicts, over)).toBe(newRule);
    expect(gradesOf("sources", verdicts, over)).toBe(incident);
  });
});

test.each(CHANGE_KINDS)("no verdict grades a change of a rule (%s)", (kind) => {
  for (const said of VERDICTS) expect(gradesOf(kind, [judged({ said })], BEYOND_DOUBT)).toBe(AS_IT_IS);
});

test("the latest verdict counts: a later verdict raises what an earlier one has lowered, and lowers what one has raised", () => {
  const [misfire, attack] = [judged({ said: "misfire" }), judged({ look: "half-hour", ...MANY })];
  const spike = alertSpike({ severity: "error", ...BEYOND_DOUBT });
  expect(gradeByVerdict(spike, [misfire]).severity).toBe("warning");
  expect(gradeByVerdict(spike, [misfire, attack]).severity).toBe("critical");
  expect(gradeByVerdict(spike, [attack, misfire]).severity).toBe("warning");
});

test("the gravest member counts, and the verdict grades it as it grades the lead", () => {
  const [lead, members] = [alertSpike(), [alertSpike({ id: 2, severity: "critical" })]];
  const gradeOf = (verdicts: readonly StoredVerdict[]) =>
    gradeByVerdict(lead, verdicts, { members }).severity;
  expect(gradeOf([])).toBe("critical");
  expect(gradeOf([judged({ said: "misfire" })])).toBe("warning");
  expect(gradeByVerdict(alertSpike({ severity: "error" }), [], { members: [alertSpike()] }).severity).toBe(
    "error",
  );
});

test("the injections that got through at an earlier look count at a later one", () => {
  const first = judged({ said: "scanner", counts: { ...ALONE.counts, ...THROUGH } });
  const later = judged({ look: "half-hour", said: "scanner", counts: ALONE.counts });
  expect(gradeByVerdict(alertSpike(), [first, later]).severity).toBe("error");
  expect(gradeByVerdict(alertSpike(), [later]).severity).toBe("warning");
});

test("no rule alone pages unless its verdict says attack, or a scanner's injections get through", () => {
  const verdict = fc
    .record({
      said: fc.constantFrom(...VERDICTS),
      likeliest: fc.constantFrom(...VERDICT_CLASSES),
      odds: fc.double({ min: 0, max: 0.95, noNaN: true }),
      addresses: fc.integer({ min: 0, max: 100 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ addresses, share, ...over }) =>
      judged({ ...over, counts: { addresses }, values: { usualAsn: share, idiom: share } }),
    );
  fc.assert(
    fc.property(
      fc.array(verdict, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(...SEVERITIES),
      fc.double({ min: 3.5, max: 20, noNaN: true }),
      (verdicts, severity, score) => {
        const after = gradeByVerdict(alertSpike({ severity, score }), verdicts).severity;
        expect(isGraver(after, "warning") && verdicts.at(-1)?.said !== "attack").toBe(false);
      },
    ),
  );
});

describe("the configuration", () => {
  const gradeOf = (
    given: Given,
    effects: { raise: boolean; lower: typeof LOWERING_VERDICTS | [] },
    kind: SpikeKind,
  ) =>
    gradeByVerdict(alertSpike({ kind, severity: "critical", ...BEYOND_DOUBT }), [judged(given)], { effects })
      .severity;

  test("switches raising off: an attack leaves every severity as it is", () => {
    for (const severity of SEVERITIES) {
      const spike = alertSpike({ severity, ...BEYOND_DOUBT });
      const effects = { raise: false, lower: [] };
      expect(gradeByVerdict(spike, [judged(MANY)], { effects }).severity).toBe(severity);
    }
  });

  test.each(LOWERING_VERDICTS)("names %s: then also an incident is at most a warning", (said) => {
    const new12 = { ...MANY, said, values: { usualAsn: 0 } };
    const named = gradeOf(new12, { raise: true, lower: LOWERING_VERDICTS }, "sources");
    const others: Severity = gradeOf(new12, { raise: true, lower: [] }, "sources");
    expect([named, others]).toEqual(["warning", said === "scanner" ? "critical" : "error"]);
  });

  test("cannot lower an attack", () => {
    expect(gradeOf(MANY, { raise: true, lower: LOWERING_VERDICTS }, "spike")).toBe("critical");
  });
});

test.each<[string, Counts, boolean]>([
  ["20 hostile requests got through", { hostile: 20, hostileThrough: 20 }, true],
  ["19 hostile requests got through", { hostile: 24, hostileThrough: 19 }, false],
  ["25 hostile requests were all stopped", { hostile: 25, hostileThrough: 0 }, true],
  ["24 hostile requests were all stopped", { hostile: 24, hostileThrough: 0 }, false],
  ["40 requests were stopped", { requests: 40, blocked: 30, challenged: 10 }, true],
  ["39 requests were stopped", { requests: 40, blocked: 30, challenged: 9 }, false],
  ["40 events of 39 requests were stopped", { requests: 39, events: 40, blocked: 40 }, false],
  ["nothing hostile and nothing stopped", { requests: 5_000, logged: 5_000 }, false],
])("few senders are troublesome if so: %s", (_what, counts, expected) => {
  const quiet = { blocked: 0, challenged: 0, logged: 0, hostile: 0, hostileThrough: 0 };
  expect(isTroublesome([judged({ counts: { ...quiet, ...counts } })])).toBe(expected);
});

test("few senders without a verdict are not troublesome, and the latest verdict counts", () => {
  const [hostile, tame] = [
    judged({ counts: { hostile: 40 } }),
    judged({ counts: { hostile: 0, blocked: 0 } }),
  ];
  expect(isTroublesome([])).toBe(false);
  expect(isTroublesome([hostile, tame])).toBe(false);
  expect(isTroublesome([tame, hostile])).toBe(true);
});
