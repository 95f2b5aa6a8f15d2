import { expect, test } from "vitest";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import { toAlertSpike } from "#alerts/rules/alert-spike.ts";
import { createAssessor } from "#alerts/rules/assess.ts";
import { decide } from "#alerts/rules/decide.ts";
import { silenceChoices, silenceCommand } from "#alerts/rules/message/commands.ts";
import { detailsOfChanges, headlineOf } from "#alerts/rules/message/headline.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { findSilence } from "#alerts/rules/silence.ts";
import { toSituation } from "#alerts/rules/verdict-effects.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { changesRule, type RuleChange } from "#model/rules.ts";
import { matchesSubject } from "#model/subject.ts";
import { alertSpike, NOW } from "./support.ts";

const SINCE = Math.floor(NOW / MINUTE_MS) - 87;
const CONTEXT = {
  nowMs: NOW,
  routing: routeToAll(["chat"]),
  asks: [],
  silences: [],
  firing: [],
  incidents: new Set<number>(),
};
const FLIP = {
  blocks: true,
  challenges: false,
  events: 6,
  of: 6,
  addresses: 4,
  usualEvents: 1_180,
  before: 1_204,
};
const flip = (ruleId: string, over: Partial<RuleChange["flip"]> = {}, since = SINCE): RuleChange => ({
  ruleId,
  since,
  foundAt: NOW,
  endedAt: null,
  flip: { ...FLIP, ...over },
});
const silence = (ruleId: string, endedAt: number | null = null): RuleChange => ({
  ruleId,
  since: SINCE,
  foundAt: NOW,
  endedAt,
  expected: 42.4,
});

function spikeOf(changes: readonly RuleChange[]) {
  const kind = changes[0]?.flip === undefined ? ("silent-rule" as const) : ("action-change" as const);
  const stored = alertSpike({
    kind,
    ruleId: changesRule(kind),
    windowCount: 6,
    peak: 6,
    baseline: 0,
    threshold: 0,
  });
  const [openedAt, severity] = [new Date(NOW), "warning" as const];
  return toAlertSpike({ ...stored, severity, openedAt, closedAt: null, changes });
}

const BLOCKS =
  "SQL injection: rule 942100 in zone 101 blocks since 14:03 UTC: 6 of 6 events of 4 addresses; before, 98 % of 1,204 were logged";
test.each<[string, "firing" | "resolved", RuleChange[]]>([
  [BLOCKS, "firing", [flip("942100")]],
  [
    "rule 7 in zone 101 logs since 2026-11-19 14:03 UTC: 6 of 6 events of 4 addresses; before, 98 % of 1,204 were blocked or challenged",
    "firing",
    [flip("7", { blocks: false }, SINCE - 1_440)],
  ],
  [
    "4 rules in zone 101 block or challenge since 14:03 UTC: 1, 2, 3 and 1 more; 24 of 24 events; before, 98 % of 4,816 were logged",
    "firing",
    [flip("1"), flip("2", { challenges: true }), flip("3"), flip("4")],
  ],
  [
    "2 rules in zone 101 changed their actions since 14:03 UTC: 1, 2",
    "firing",
    [flip("1"), flip("2", { blocks: false })],
  ],
  [
    "rule 1 in zone 101 blocks since 14:03 UTC; an alert about changed actions ends after a day",
    "resolved",
    [flip("1")],
  ],
  [
    "rule 1 in zone 101 is silent since 14:03 UTC: about 42 events were to be expected since then",
    "firing",
    [silence("1"), silence("2", NOW)],
  ],
  ["2 rules in zone 101 are silent since 14:03 UTC: 1, 2", "firing", [silence("1"), silence("2")]],
  [
    "rule 1 in zone 101 has events again; silent since 14:03 UTC for 1 h 27 min",
    "resolved",
    [silence("1", NOW)],
  ],
  [
    "rule 1 in zone 101 is silent since 14:03 UTC; an alert about silent rules ends after a week",
    "resolved",
    [silence("1")],
  ],
])("the headline is: %s", (headline, state, changes) => {
  expect(headlineOf(spikeOf(changes), state)).toBe(headline);
});

test("details are a sentence for each of a few rules, and lines that name all of many", () => {
  expect(detailsOfChanges([flip("1")])).toEqual([]);
  expect(detailsOfChanges([flip("1"), silence("2")])[1]).toBe(
    "rule 2 is silent since 14:03 UTC: about 42 events were to be expected since then",
  );
  const ids = Array.from({ length: 40 }, (_, i) => `9420${i + 10}`);
  const lines = detailsOfChanges(ids.map((id) => flip(id)));
  expect(lines.every((line) => line.startsWith("blocks: ") && line.length <= 300)).toBe(true);
  expect(lines.flatMap((line) => line.replace("blocks: ", "").split(", "))).toEqual(ids);
  const hostile = Array.from({ length: 500 }, (_, i) => `${i}${"x".repeat(200)}`);
  const capped = detailsOfChanges(hostile.map((id) => flip(id)));
  expect(capped).toHaveLength(7);
  expect(capped.at(-1)).toMatch(/^and 47\d more rules$/);
});

test("a change of action warns, a silent rule informs, and the platform is asked about neither", () => {
  const assess = createAssessor(CONTEXT);
  const [change, silent] = [assess(spikeOf([flip("1")])), assess({ ...spikeOf([silence("1")]), id: 2 })];
  expect([change.spike.severity, silent.spike.severity]).toEqual(["warning", "info"]);
  for (const { advice } of [change, silent]) expect(advice.state).toBe("unavailable");
});

test("routes match one of the rules, a silence must match all that still differ", () => {
  const spike = spikeOf([flip("942100"), flip("941100"), { ...flip("920100"), endedAt: NOW }]);
  const isRouted = (rule: string[]) => matchesSubject({ rule }, spike);
  expect([isRouted(["942*"]), isRouted(["920100"]), isRouted(["(action-change)"])]).toEqual([
    true,
    false,
    false,
  ]);
  const isMuted = (matchers: object) =>
    findSilence([{ id: 1, startsAtMs: 0, expiresAtMs: NOW + 1, matchers }], spike, NOW) !== null;
  expect([isMuted({ rule: ["942*"] }), isMuted({ rule: ["942*", "941100"] })]).toEqual([false, true]);
  expect(isMuted({ kind: ["action-change"] })).toBe(true);
});

test.each([
  [
    ["942100"],
    "longwatch silences add --zone 101 --rule=942100 --kind action-change --for 2h --reason 'why'",
  ],
  [["942*"], "longwatch silences add --zone 101 --kind action-change --for 2h --reason 'why'"],
  [["1", "2"], "longwatch silences add --zone 101 --kind action-change --for 2h --reason 'why'"],
])("the silence of %j names its kind, and its rule if it is one", (rules, command) => {
  const spike = spikeOf(rules.map((id) => flip(id)));
  expect(silenceCommand(1, silenceChoices(spike))).toBe(command);
});

test("further rules are named a quarter of an hour after the last message, then twice as long after, and nothing is repeated", () => {
  let alert: AlertRecord | null = null;
  const told: string[] = [];
  const changes = [flip("1")];
  for (let minute = 0; minute < 20 * 60; minute += 1) {
    const nowMs = NOW + minute * MINUTE_MS;
    // A rule an hour for half a day.
    if (minute > 0 && minute % 60 === 1 && minute < 720)
      changes.push({ ...flip(`${minute}`), foundAt: nowMs });
    const assessment = createAssessor({ ...CONTEXT, nowMs })(spikeOf([...changes]));
    const decision = decide(toSituation(assessment, alert), { ...CONTEXT, nowMs });
    if (decision === null) continue;
    alert = decision.alert;
    told.push(`${decision.reason} at ${minute}`);
  }
  const joins = [15, 61, 121, 241, 481, 721].map((minute) => `join at ${minute}`);
  expect(told).toEqual(["first at 0", ...joins]);
});
