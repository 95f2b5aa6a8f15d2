import fc from "fast-check";
import { expect, test } from "vitest";
import { findInhibition, isInForce, pickRoutes, planRoute } from "#alerts/rules/routing/plan-route.ts";
import { DEFAULT_TIMING, type QuietHours, type Route, routeToAll } from "#alerts/rules/routing/routing.ts";
import { SEVERITIES, WEEKDAYS } from "#model/kinds.ts";
import { matchesSubject, type Subject, type SubjectMatchers } from "#model/subject.ts";

const subjects: fc.Arbitrary<Subject> = fc.record({
  kind: fc.constantFrom("spike", "new-rule", "self"),
  zoneId: fc.option(fc.constantFrom(101, 102)),
  ruleId: fc.option(fc.constantFrom("942100", "942200", "920100")),
  severity: fc.constantFrom(...SEVERITIES),
});
const matcherSets: fc.Arbitrary<SubjectMatchers> = fc.record(
  {
    zone: fc.subarray([101, 102], { minLength: 1 }),
    rule: fc.subarray(["942*", "920100", "*"], { minLength: 1 }),
    severity: fc.subarray([...SEVERITIES], { minLength: 1 }),
    kind: fc.subarray(["spike", "new-rule", "self"], { minLength: 1 }),
  },
  { requiredKeys: [] },
);
function routesOfDepth(depth: number): fc.Arbitrary<Route> {
  return fc.record({
    matchers: matcherSets,
    channels: fc.subarray(["chat", "pager", "mail"]),
    timing: fc.integer({ min: 1, max: 9 }).map((hours) => ({ ...DEFAULT_TIMING, repeatIntervalMs: hours })),
    continue: fc.boolean(),
    routes: depth === 0 ? fc.constant([]) : fc.array(routesOfDepth(depth - 1), { maxLength: 3 }),
  });
}
const routes = routesOfDepth(3);

function subjectOf(over: Partial<Subject> = {}): Subject {
  return { kind: "spike", zoneId: 101, ruleId: "942100", severity: "warning", ...over };
}

function routeOf(over: Partial<Route>): Route {
  return { matchers: {}, channels: [], timing: DEFAULT_TIMING, continue: false, routes: [], ...over };
}

/** The tree's meaning, said another way: every path from the root that no earlier sibling has cut off. */
function pathsOf(route: Route, subject: Subject): Route[][] {
  const paths: Route[][] = [];
  let isCut = false;
  for (const child of route.routes) {
    const isMatch = matchesSubject(child.matchers, subject);
    if (!isCut && isMatch) paths.push(...pathsOf(child, subject).map((rest) => [route, ...rest]));
    isCut ||= isMatch && !child.continue;
  }
  return paths.length === 0 ? [[route]] : paths;
}

test("every alert has a route, and only routes whose whole path matches it", () => {
  fc.assert(
    fc.property(routes, subjects, (root, subject) => {
      const picked = pickRoutes(root, subject);
      const paths = pathsOf(root, subject);
      expect(picked).toEqual(paths.map((path) => path.at(-1)));
      expect(picked.length).toBeGreaterThan(0);
      for (const path of paths)
        expect(path.slice(1).every(({ matchers }) => matchesSubject(matchers, subject))).toBe(true);
    }),
  );
});

test("a further matcher never matches more alerts", () => {
  fc.assert(
    fc.property(matcherSets, matcherSets, subjects, (some, more, subject) => {
      fc.pre(matchesSubject({ ...more, ...some }, subject));
      expect(matchesSubject(some, subject)).toBe(true);
    }),
  );
});

test("every routed channel is notified now or after its quiet hours, never both and never twice, at the shortest of its intervals", () => {
  const night: QuietHours = {
    timeZone: "UTC",
    days: WEEKDAYS,
    fromMinute: 0,
    toMinute: 720,
    channels: ["chat"],
    matchers: {},
    critical: "tell",
  };
  fc.assert(
    fc.property(routes, subjects, fc.integer({ min: 0, max: 2e12 }), (root, subject, nowMs) => {
      const routing = { ...routeToAll(["chat", "pager", "mail"]), root, quietHours: [night] };
      const { channels, held, repeatIntervalMs } = planRoute(routing, subject, nowMs);
      const picked = pickRoutes(root, subject);
      const routed = new Set(picked.flatMap((route) => route.channels));
      expect([...channels, ...held].sort()).toEqual([...routed].sort());
      expect(subject.severity === "critical" ? held : []).toEqual([]);
      for (const [channel, intervalMs] of repeatIntervalMs) {
        const intervals = picked.filter((route) => route.channels.includes(channel));
        expect(intervalMs).toBe(Math.min(...intervals.map(({ timing }) => timing.repeatIntervalMs)));
      }
    }),
  );
});

test("only the first matching route applies unless it has `continue`", () => {
  const critical = routeOf({ matchers: { severity: ["critical"] }, channels: ["pager"] });
  const rest = routeOf({ channels: ["chat"] });
  const channels = (isContinued: boolean) =>
    pickRoutes(
      routeOf({ routes: [{ ...critical, continue: isContinued }, rest] }),
      subjectOf({ severity: "critical" }),
    ).flatMap((route) => route.channels);
  expect(channels(false)).toEqual(["pager"]);
  expect(channels(true)).toEqual(["pager", "chat"]);
});

test("an inhibition mutes its targets in the same zone, and never its own sources", () => {
  const inhibition = {
    source: { severity: ["critical"] },
    target: { kind: ["spike"] },
    equal: ["zone"],
  } as const;
  const source = subjectOf({ severity: "critical", ruleId: "920100" });
  const find = (subject: Subject) => findInhibition([inhibition], subject, [source]);
  expect(find(subjectOf())).toBe(inhibition);
  expect(find(subjectOf({ zoneId: 102 }))).toBeNull();
  expect(find(subjectOf({ severity: "critical" }))).toBeNull();
  expect(findInhibition([inhibition], subjectOf(), [])).toBeNull();
});

test("an inhibition with equal rules mutes the rule in every zone, and no other rule", () => {
  const inhibition = { source: { severity: ["critical"] }, target: {}, equal: ["rule"] } as const;
  const source = subjectOf({ severity: "critical", zoneId: 102 });
  const find = (subject: Subject) => findInhibition([inhibition], subject, [source]);
  expect(find(subjectOf())).toBe(inhibition);
  expect(find(subjectOf({ zoneId: 102, ruleId: "920100" }))).toBeNull();
});

test("one inhibition never mutes all firing alerts", () => {
  const inhibitions = fc.array(
    fc.record({
      source: matcherSets,
      target: matcherSets,
      equal: fc.subarray(["zone", "rule"] as const),
    }),
    { minLength: 1, maxLength: 1 },
  );
  fc.assert(
    fc.property(inhibitions, fc.array(subjects, { minLength: 1 }), (one, firing) => {
      expect(firing.some((subject) => findInhibition(one, subject, firing) === null)).toBe(true);
    }),
  );
});

const NIGHT: QuietHours = {
  timeZone: "Europe/Amsterdam",
  days: ["fri"],
  fromMinute: 22 * 60,
  toMinute: 7 * 60,
  channels: null,
  matchers: {},
  critical: "tell",
};

test.each([
  ["2026-11-20T20:59:00Z", false, "a minute early"],
  ["2026-11-20T21:00:00Z", true, "ten o'clock on Friday evening"],
  ["2026-11-21T05:59:00Z", true, "Saturday morning still belongs to Friday's night"],
  ["2026-11-21T06:00:00Z", false, "seven o'clock"],
  ["2026-11-21T21:30:00Z", false, "Saturday evening"],
  ["2026-11-20T05:00:00Z", false, "Friday morning belongs to Thursday's night"],
  ["2026-07-17T20:00:00Z", true, "ten o'clock in summer"],
])("quiet hours follow the wall clock of their time zone: %s is %s, %s", (time, expected) => {
  expect(isInForce(NIGHT, Date.parse(time))).toBe(expected);
});

test("critical alerts notify in quiet hours unless `critical: hold` is set", () => {
  const nowMs = Date.parse("2026-11-20T23:00:00Z");
  const routed = (critical: "tell" | "hold", severity: Subject["severity"]) =>
    planRoute(
      { ...routeToAll(["chat"]), quietHours: [{ ...NIGHT, critical }] },
      subjectOf({ severity }),
      nowMs,
    );
  expect(routed("tell", "critical").channels).toEqual(["chat"]);
  expect(routed("hold", "critical")).toMatchObject({ channels: [], held: ["chat"] });
  expect(routed("tell", "error")).toMatchObject({ channels: [], held: ["chat"] });
});
