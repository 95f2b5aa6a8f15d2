import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { VERDICT_CLASSES, VERDICT_LOOKS } from "#model/kinds.ts";
import { MOST_ODDS, type StoredVerdict, storedVerdict } from "#model/verdict.ts";
import { judgeVerdict } from "#stages/detection/verdict/judge-verdict.ts";
import { SHIPPED_WEIGHTS } from "#stages/detection/verdict/weights.ts";
import { ATTACK, BROKEN_CLIENT, CRAWLER, evidenceOf, SCANNER, type Told } from "./evidence-of.ts";

const judge = (told: Told = {}): StoredVerdict => judgeVerdict(evidenceOf(told), SHIPPED_WEIGHTS);
const NAMED = { crawler: "Examplebot" };

describe("a verdict", () => {
  test.each<[string, Told, string, string]>([
    ["visitors at the first look", {}, "misfire", "May be a misfire"],
    ["visitors after half an hour", { look: "half-hour" }, "misfire", "Looks like a misfire"],
    ["visitors who go on", { look: "six-hours", lasting: 0.2 }, "misfire", "Misfire"],
    ["visitors who go on for a day", { look: "day", lasting: 1 }, "misfire", "Misfire"],
    ["visitors who stopped", { look: "six-hours", lasting: 0.19 }, "misfire", "Looked like a misfire"],
    ["many new networks with injections", ATTACK, "attack", "Probably an attack"],
    ["one address on many paths", SCANNER, "scanner", "Scanner"],
    ["one address with one request", BROKEN_CLIENT, "broken-client", "Broken client"],
    ["a crawler of a verified operator", { ...CRAWLER, ...NAMED }, "crawler", "Verified crawler"],
    ["a crawler of nobody", CRAWLER, "unclear", "Unclear: attack or crawler"],
  ])("of %s is said with its title", (_, told, said, title) => {
    expect(judge(told)).toMatchObject({ said, title });
  });

  test("says attack for a scan with 120 events of each address, with the scan as its first reason", () => {
    expect(judge({ ...SCANNER, number: 119 }).said).toBe("scanner");
    const deep = judge({ ...SCANNER, number: 120 });
    expect(deep).toMatchObject({ said: "attack", title: "Probably an attack" });
    expect(deep.for[0]).toBe("It is a deep scan: 1 address caused 120 events on 120 paths.");
    expect(judge({ ...BROKEN_CLIENT, number: 500 }).said).toBe("broken-client");
  });

  test("says attack for a scan that mostly tries injections, however few its events are", () => {
    const scan = (injections: number) =>
      judge({
        ...SCANNER,
        number: 20,
        request: (index) => ({
          ...SCANNER.request?.(index),
          matched: index < injections ? "' or 1=1" : "/admin",
        }),
      });
    expect(scan(9).said).toBe("scanner");
    expect(scan(10)).toMatchObject({ said: "attack", title: "Probably an attack" });
    expect(scan(10).for[0]).toBe("50 % of 20 requests that were read hold an idiom of attacks.");
    expect(judge({ ...BROKEN_CLIENT, number: 20 }).said).toBe("broken-client");
  });

  test("is what the model describes", () => {
    for (const told of [{}, ATTACK, SCANNER, BROKEN_CLIENT, CRAWLER, { number: 0, request: null }])
      expect(storedVerdict.parse(judge(told))).toEqual(judge(told));
  });

  test("lasts only at the looks at 6 and 24 hours", () => {
    const lasts = VERDICT_LOOKS.map((look) => judge({ look, lasting: 0.9 }).isLasting);
    expect(lasts).toEqual([false, false, true, true]);
    expect(judge({ look: "day", lasting: null }).isLasting).toBe(false);
  });

  test("says why, why not, who, and what to do with figures", () => {
    expect(judge(ATTACK)).toMatchObject({
      for: [
        "All of 120 events are on one path.",
        "All of 120 requests that were read hold an idiom of attacks.",
      ],
      against: "None of 120 events are on paths that are usual here.",
      who: "120 addresses of 120 networks; none of the networks is usual here.",
      nextStep:
        "120 of 120 events in 1 h got through. Block what the addresses have in common, such as a network or JA4, or switch rule 942440 to blocking.",
    });
    expect(judge()).toMatchObject({
      who: "40 addresses of 4 networks; 4 of the networks are usual here.",
      nextStep:
        "60 of 60 events in 1 h were blocked. Look at the sample and mark the alert, or wait for the look at 2026-11-25 18:00 UTC.",
    });
    expect(judge({ ...ATTACK, ruleId: null, event: () => ({ ip: "203.0.113.7" }) }).nextStep).toBe(
      "None of 120 events in 1 h got through. Check what else the addresses requested.",
    );
  });

  test("names no number as a reason whose weight separates other classes", () => {
    for (const told of [{}, ATTACK, SCANNER, BROKEN_CLIENT, CRAWLER]) {
      const { for: reasons, against } = judge(told);
      expect([...reasons, against].join(" ")).not.toMatch(/own host|JA4|rules within 24 hours on average/);
    }
  });

  test("has no reason for it or against it if nothing is known", () => {
    const bare = judge({ number: 0, request: null });
    expect(bare).toMatchObject({ said: expect.any(String), against: null, for: [], sample: null });
  });

  test("adds up: each number's part is its weight against the second class, times its distance from the mean", () => {
    const { features, likeliest } = judge();
    expect(likeliest).toBe("misfire");
    const { session } = SHIPPED_WEIGHTS.features;
    const parts = VERDICT_CLASSES.map(
      (name) => (session.misfire - session[name]) * (1 - SHIPPED_WEIGHTS.means.session),
    );
    expect(parts).toContain(features.session.adds);
    expect(judge({ request: null }).features.session).toEqual({ value: null, adds: 0 });
  });

  test("never calls anything safe or a botnet, and quotes no request", () => {
    for (const told of [{}, ATTACK, SCANNER, BROKEN_CLIENT, { ...CRAWLER, ...NAMED }])
      for (const look of VERDICT_LOOKS) {
        const { title, for: reasons, against, who, nextStep } = judge({ ...told, look });
        const text = [title, ...reasons, against, who, nextStep].join(" ");
        expect(text).not.toMatch(/safe|botnet|shop\.example|1=1|Mozilla|Examplebot|undefined|NaN|null/i);
      }
  });
});

describe("with less evidence", () => {
  test("a verdict names what was missing", () => {
    expect(judge().missing).toEqual([]);
    expect(judge({ request: null, event: () => ({ ja4: "" }), usual: { days: 0 } }).missing).toEqual([
      "raw records",
      "JA4",
      "a month of history",
    ]);
  });

  test.each<[string, Told]>([
    ["without records", { request: null }],
    ["without headers in the records", { request: () => ({ hasSession: null, hasOwnReferer: null }) }],
  ])("visitors %s are no misfire, and no attack that may raise a severity", (_, told) => {
    const verdict = judge(told);
    expect(verdict.said).not.toBe("misfire");
    expect(verdict.classes.misfire).toBeLessThan(judge().classes.misfire);
    expect(verdict.classes.attack).toBeLessThan(0.85);
  });

  test("visitors on the first day are less surely a misfire, and no attack", () => {
    const verdict = judge({ usual: { days: 0, asns: new Set(), ja4s: new Set(), paths: new Set() } });
    expect(verdict.classes.misfire).toBeLessThan(judge().classes.misfire);
    expect(verdict.classes.attack).toBeLessThan(0.5);
  });

  test.each<[string, Told]>([
    ["without records", { request: null }],
    ["without JA4", { event: (index) => ({ ...ATTACK.event?.(index), ja4: "" }) }],
    ["on the first day", { usual: { days: 0 } }],
  ])("an attack %s is still one", (_, told) => {
    expect(judge({ ...ATTACK, ...told }).said).toBe("attack");
  });

  test("on the first day, no address counts as new", () => {
    const usual = { days: 1, asns: new Set<string>() };
    expect(judge({ usual }).who).toBe(
      "40 addresses of 4 networks; which networks are usual here is not known yet.",
    );
    expect(judge({ event: () => ({ asn: "" }) }).who).toBe("40 addresses; their networks are not known.");
    expect(judge({ event: () => ({ ip: "" }) }).who).toBe("The addresses are not known.");
  });
});

describe("an attacker", () => {
  /** Home networks, everyday paths, a forged cookie and referer. */
  const forged = (matched: string): Told => ({
    request: (index) => ({ matched: index % 10 === 0 ? matched : "a -- b" }),
  });

  test.each(VERDICT_LOOKS)(
    "that forges every header is no misfire at the look %s while idioms are sent",
    (look) => {
      const verdict = judge({ ...forged("1 union select name from users"), look, lasting: 1 });
      expect(verdict).toMatchObject({ said: "unclear", title: "Unclear: attack or misfire" });
      expect(verdict.against).toBe("10 % of 60 requests that were read hold an idiom of attacks.");
      expect(judge({ ...forged("no idiom"), look, lasting: 1 }).said).toBe("misfire");
    },
  );

  test("that repeats every request is no broken client while idioms are sent", () => {
    const verdict = judge({ ...BROKEN_CLIENT, request: () => ({ matched: "<script>alert(1)</script>" }) });
    expect(verdict.said).not.toBe("broken-client");
  });

  test("with an agent that says bot is no crawler", () => {
    const verdict = judge({ ...ATTACK, event: (index) => ({ ...ATTACK.event?.(index), ua: "Examplebot" }) });
    expect(verdict.said).not.toBe("crawler");
  });

  test("needs better odds for a misfire at the first look than later", () => {
    // Two fifths of the requests have no session: odds between the two limits.
    const between = { request: (index: number) => ({ hasSession: index % 20 < 12, hasOwnReferer: true }) };
    const first = judge(between);
    expect(first.odds).toBeGreaterThan(0.8);
    expect(first.odds).toBeLessThan(0.9);
    expect(first).toMatchObject({ said: "unclear", likeliest: "misfire" });
    expect(judge({ ...between, look: "half-hour" }).said).toBe("misfire");
  });
});

describe("the sample", () => {
  test("is the newest request with an idiom for an attack, and its texts are cut", () => {
    const url = `https://shop.example/${"a".repeat(900)}`;
    const { sample } = judge({
      ...ATTACK,
      event: (index) => ({ ...ATTACK.event?.(index), url }),
      request: (index) => ({
        ...ATTACK.request?.(index),
        matched: index < 3 ? "none" : `' or 1=1${"x".repeat(900)}`,
      }),
    });
    expect(sample?.logId).toBe("log-3");
    expect(sample?.url).toHaveLength(300);
    expect(sample?.matched).toHaveLength(200);
  });

  test("is the newest request with the most common parameter for a misfire", () => {
    const request = (index: number) => ({ parameter: index < 2 ? "ARGS:rare" : "ARGS:text" });
    expect(judge({ request }).sample).toMatchObject({ logId: "log-2", parameter: "ARGS:text" });
  });

  test("without records is the newest event", () => {
    expect(judge({ request: null }).sample).toMatchObject({
      logId: "log-0",
      method: "",
      parameter: null,
      matched: null,
    });
  });
});

test("the odds of any evidence add up to one, and none is above the most that is shown", () => {
  const share = fc.integer({ min: 0, max: 9 });
  const shares = fc.record({
    cookie: share,
    idiom: share,
    hosts: share,
    urls: share,
    rules: share,
    logged: share,
  });
  fc.assert(
    fc.property(
      shares,
      fc.constantFrom(...VERDICT_LOOKS),
      fc.boolean(),
      ({ cookie, idiom, hosts, urls, rules, logged }, look, bare) => {
        const verdict = judge({
          look,
          lasting: logged / 9,
          number: 1 + hosts * 12,
          event: (index) => ({
            ip: `203.0.113.${index % (1 + hosts * 5)}`,
            url: `https://h/p${index % (1 + urls * 3)}/x`,
            action: index % 9 < logged ? "logged" : "blocked",
          }),
          request: bare
            ? null
            : (index) => ({ hasSession: index % 9 < cookie, matched: index % 9 < idiom ? "' or 1=1" : "a" }),
          rulesElsewhere: rules,
        });
        expect(Object.values(verdict.classes).reduce((sum, odds) => sum + odds, 0)).toBeCloseTo(1, 9);
        expect(Math.max(...Object.values(verdict.classes))).toBeLessThanOrEqual(MOST_ODDS);
        expect(verdict.odds).toBe(Math.max(...Object.values(verdict.classes)));
        storedVerdict.parse(verdict);
      },
    ),
  );
});
