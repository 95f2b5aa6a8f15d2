import { expect, test } from "vitest";
import { proposeExclusion, refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import type { VerdictEvent, VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { PLACEHOLDERS } from "#detection/rules/verdict/path-template.ts";
import { exclusionProposal } from "#model/advice.ts";
import { NO_FACTS, type RequestDetails } from "#model/request-facts.ts";

const RULE = "942440";
const AT = Date.UTC(2026, 10, 20, 12);

interface Drawn {
  readonly url: string;
  readonly method?: string;
  readonly parameter?: string | null;
  readonly matched?: string;
  readonly times?: number;
  readonly ruleId?: string;
  readonly feature?: string;
  readonly ip?: (index: number) => string;
}

/** The evidence of an alert with these events; without `method` the record was not read. */
function drawEvidence(
  drawn: readonly Drawn[],
  more: Partial<VerdictEvidence> = {},
): VerdictEvidence & { readonly events: readonly VerdictEvent[] } {
  const requests = new Map<string, RequestDetails>();
  const events = drawn.flatMap(({ times = 1, url, ruleId = RULE, feature = "waf", ...one }, group) =>
    Array.from({ length: times }, (_, index): VerdictEvent => {
      const logId = `${group}-${index}`;
      const { method, parameter = null, matched = null, ip = (at: number) => `203.0.113.${at % 200}` } = one;
      if (method !== undefined) requests.set(logId, { ...NO_FACTS, method, parameter, matched });
      const facts = method === undefined ? null : { ...NO_FACTS, method };
      const text = { asn: "64500", ja4: "t13", ua: "browser" };
      const place = { url: url.replace("#", String(index)), ip: ip(index) };
      return { at: AT + index * 5_000, logId, ruleId, action: "blocked", feature, facts, ...text, ...place };
    }),
  );
  return {
    look: "six-hours",
    judgedAt: AT,
    openedAt: AT,
    since: AT,
    ruleId: RULE,
    events,
    nearby: [],
    requests,
    usual: { asns: new Set(), ja4s: new Set(), paths: new Set(), days: 30, hasCookies: true },
    crawler: null,
    lasting: 1,
    usualSenders: new Map(),
    usualPerHour: null,
    ...more,
  };
}

const REVIEWS = { url: "https://shop.example.test/products/#/reviews", method: "POST" };

test("a rule that matches one parameter of one path gets rule, path, method and parameter", () => {
  const evidence = drawEvidence([
    { ...REVIEWS, parameter: "ARGS:title", matched: "don't -- really", times: 95 },
    { url: "https://shop.example.test/login", method: "POST", parameter: "ARGS:q", times: 5 },
  ]);
  const proposal = proposeExclusion(evidence);
  expect(proposal).toMatchObject({ form: "narrow", ruleId: RULE, covered: 0.95, events: 100, refusal: null });
  const clause = { template: "/products/{n}/reviews", method: "POST", parameter: "ARGS:title" };
  expect(proposal.clauses).toEqual([{ ruleIds: [RULE], ...clause }]);
  expect(exclusionProposal.parse(proposal)).toEqual(proposal);
});

test("four parameters at most are named; more of them on one path are covered without the parameter", () => {
  const five = ["a", "b", "c", "d", "e"].map((name) => ({
    ...REVIEWS,
    parameter: `ARGS:${name}`,
    times: 20,
  }));
  const wider = proposeExclusion(drawEvidence(five));
  expect(wider.form).toBe("narrow");
  expect(wider.clauses).toMatchObject([{ method: "POST", parameter: null }]);
  const four = proposeExclusion(drawEvidence(five.slice(0, 4)));
  expect(four.clauses.map(({ parameter }) => parameter)).toEqual(["ARGS:a", "ARGS:b", "ARGS:c", "ARGS:d"]);
});

test("a group with attack idioms in more than a tenth of its requests is left out", () => {
  const attack = { ...REVIEWS, parameter: "ARGS:id", matched: "1 union select password from users" };
  const plain = { ...REVIEWS, parameter: "ARGS:title", matched: "select two from the list" };
  const proposal = proposeExclusion(
    drawEvidence([
      { ...attack, times: 30 },
      { ...plain, times: 70 },
    ]),
  );
  expect(proposal).toMatchObject({ form: "partial", covered: 0.7, clauses: [{ parameter: "ARGS:title" }] });
  expect(proposeExclusion(drawEvidence([{ ...attack, times: 50 }])).form).toBe("refused");
});

test("a group below 4 % is no clause", () => {
  const scattered = Array.from({ length: 40 }, (_, index) => ({
    url: `https://shop.example.test/page${index}`,
    method: "GET",
    parameter: "ARGS:q",
    times: 1,
  }));
  const most = { ...REVIEWS, parameter: "ARGS:title", times: 60 };
  expect(proposeExclusion(drawEvidence([most, ...scattered]))).toMatchObject({
    form: "partial",
    covered: 0.6,
    clauses: [{ template: "/products/{n}/reviews" }],
  });
});

test("a cookie that matches on many paths is shown as one parameter", () => {
  const pages = Array.from({ length: 25 }, (_, index) => ({
    url: `https://shop.example.test/p${index}`,
    method: "GET",
    parameter: "REQUEST_COOKIES:consent",
    times: 4,
  }));
  expect(proposeExclusion(drawEvidence(pages))).toMatchObject({
    form: "one-parameter",
    covered: 1,
    clauses: [{ template: null, method: null, parameter: "REQUEST_COOKIES:consent" }],
  });
  const mixed = pages.map((page, index) => ({ ...page, parameter: `ARGS:p${index}` }));
  expect(proposeExclusion(drawEvidence(mixed)).form).toBe("refused");
});

test("without records the proposal has no method and is partial", () => {
  const { url } = REVIEWS;
  expect(proposeExclusion(drawEvidence([{ url, times: 50 }]))).toMatchObject({
    form: "partial",
    covered: 1,
    clauses: [{ template: "/products/{n}/reviews", method: null, parameter: null }],
  });
});

test("records without a method keep the parameter, and the proposal is partial", () => {
  const row = { ...REVIEWS, method: "", parameter: "ARGS:title" };
  expect(proposeExclusion(drawEvidence([{ ...row, times: 50 }]))).toMatchObject({
    form: "partial",
    clauses: [{ method: null, parameter: "ARGS:title" }],
  });
  const listed = { ...row, method: "POST", times: 10 };
  expect(proposeExclusion(drawEvidence([{ ...row, times: 50 }, listed]))).toMatchObject({
    form: "narrow",
    events: 10,
  });
});

test("the first page is only excluded with a parameter", () => {
  const home = { url: "https://shop.example.test/?q=#", method: "GET", times: 50 };
  expect(proposeExclusion(drawEvidence([home])).form).toBe("refused");
  expect(proposeExclusion(drawEvidence([{ ...home, parameter: "ARGS:q" }]))).toMatchObject({
    form: "narrow",
    clauses: [{ template: "/", parameter: "ARGS:q" }],
  });
});

test("events without a URL are never excluded by path", () => {
  const nothing = { url: "", method: "POST", parameter: "ARGS:q", times: 50 };
  expect(proposeExclusion(drawEvidence([nothing]))).toMatchObject({ form: "refused", clauses: [] });
});

test.each(["949110", "949111", "959100", "980130", "901340"])("rule %s is refused", (ruleId) => {
  const evidence = drawEvidence([{ ...REVIEWS, ruleId, parameter: "ARGS:title", times: 50 }], { ruleId });
  const { form, clauses, refusal } = proposeExclusion(evidence);
  expect({ form, clauses }).toEqual({ form: "refused", clauses: [] });
  expect(refusal).toContain(ruleId);
});

test("rate limits, bot detection and events without a rule are refused", () => {
  for (const feature of ["rateLimit", "botDetection", "ddos", "accessLists"])
    expect(refuseRule("1048576", feature)).not.toBeNull();
  expect(refuseRule("", "waf")).not.toBeNull();
  expect(refuseRule("1048576", "waf")).toBeNull();
  const limited = { ...REVIEWS, parameter: "ARGS:title", feature: "rateLimit", times: 50 };
  expect(proposeExclusion(drawEvidence([limited])).form).toBe("refused");
});

test("fewer than ten events are refused", () => {
  const few = { ...REVIEWS, parameter: "ARGS:title", times: 9 };
  expect(proposeExclusion(drawEvidence([few]))).toMatchObject({ form: "refused", events: 9 });
  expect(proposeExclusion(drawEvidence([{ ...few, times: 10 }])).form).toBe("narrow");
});

test("other rules of the same requests are named, and those of other requests are not", () => {
  const own = { ...REVIEWS, parameter: "ARGS:title", times: 40 };
  const sister = { ...own, ruleId: "942200", parameter: "ARGS:body" };
  const elsewhere = { ...own, ruleId: "941100", url: "https://shop.example.test/search" };
  const score = { ...own, ruleId: "949110" };
  const rare = { ...own, ruleId: "932100", times: 7 };
  expect(proposeExclusion(drawEvidence([own, sister, elsewhere, score, rare])).together).toEqual([
    { ruleId: "942200", parameter: "ARGS:body", share: 1 },
  ]);
});

test("an alert with the events of one rule finds the other rules by its addresses", () => {
  const template = "/products/{n}/reviews";
  const nearby = Array.from({ length: 20 }, (_, index) => ({ ip: `203.0.113.${index}`, template })).flatMap(
    ({ ip }, index) => [
      { ip, template, ruleId: RULE },
      ...(index < 10 ? [{ ip, template, ruleId: "942200" }] : []),
      { ip, template: "/login", ruleId: "941100" },
    ],
  );
  const evidence = drawEvidence([{ ...REVIEWS, parameter: "ARGS:title", times: 20 }], { nearby });
  expect(proposeExclusion(evidence).together).toEqual([{ ruleId: "942200", parameter: null, share: 0.5 }]);
});

test("an incident's proposal is for its most frequent rule", () => {
  const own = { ...REVIEWS, parameter: "ARGS:title", times: 40 };
  const evidence = drawEvidence([own, { ...own, ruleId: "941100", times: 20 }], { ruleId: null });
  expect(proposeExclusion(evidence)).toMatchObject({ ruleId: RULE, events: 40 });
});

test("a thousand shapes of hostile paths end in a refusal", () => {
  const shapes = Array.from({ length: 5_000 }, (_, index) => ({
    url: `https://shop.example.test/${index}(${"/x(".repeat(index % 300)}/\u202e${"]".repeat(9)}`,
    method: "__proto__",
    parameter: `ARGS:${index}`,
  }));
  const proposal = proposeExclusion(drawEvidence(shapes));
  expect(proposal).toMatchObject({ form: "refused", events: 5_000 });
});

test.each(Object.keys(PLACEHOLDERS))(
  "nothing is proposed from requests that write %s into their URL",
  (name) => {
    for (const path of [`/admin/${name}`, `/admin/x/${name}?q`, `/admin/${name}/edit#top`]) {
      const drawn = { url: `https://shop.example.test${path}`, method: "GET", times: 30 };
      expect(proposeExclusion(drawEvidence([drawn]))).toMatchObject({ form: "refused", clauses: [] });
    }
    // A URL is read to its 2,048th character, so the end of a segment may be cut off.
    const before = `https://shop.example.test/${"a".repeat(2_048 - 27 - name.length)}/`;
    const cut = { url: `${before}${name}x`, method: "GET", times: 30 };
    expect(proposeExclusion(drawEvidence([cut])).clauses).toEqual([]);
  },
);

test("requests that write a placeholder add nothing to the proposal of others", () => {
  const literal = { url: "https://shop.example.test/products/{n}/reviews", method: "POST", times: 50 };
  const proposal = proposeExclusion(drawEvidence([{ ...REVIEWS, times: 50 }, literal]));
  expect(proposal).toMatchObject({ form: "partial", covered: 0.5 });
});
