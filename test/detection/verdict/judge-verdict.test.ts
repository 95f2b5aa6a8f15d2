import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { computeFeatures, SHIPPED_WEIGHTS } from "#detection/rules/verdict/compute-features.ts";
import { judgeVerdict, oddsOf } from "#detection/rules/verdict/judge-verdict.ts";
import { groupRequests } from "#detection/rules/verdict/requests.ts";
import { VERDICT_CLASSES, VERDICT_TIMES } from "#model/kinds.ts";
import { NO_FACTS } from "#model/request-facts.ts";
import { MOST_ODDS, type StoredVerdict, SURE_ODDS, storedVerdict } from "#model/verdict.ts";
import { ATTACK, BROKEN_CLIENT, CRAWLER, evidenceOf, SCANNER, type Told } from "./evidence-of.ts";

const judge = (told: Told = {}): StoredVerdict => judgeVerdict(evidenceOf(told), SHIPPED_WEIGHTS);
const NAMED = { crawler: "Examplebot" };
/** It comes from a usual network, but names a crawler whose operator can be asked. */
const FALSE_CRAWLER: Told = {
  ...CRAWLER,
  event: (index) => ({ ...CRAWLER.event?.(index), ua: "Mozilla/5.0 (compatible; Googlebot/2.1)" }),
};
/** Returns what the reasons say: the log odds of the likeliest class against the one that it is compared with. */
const sumOf = ({ start = Number.NaN, features }: StoredVerdict) =>
  Object.values(features).reduce((sum, { adds }) => sum + adds, start);

describe("a verdict", () => {
  test.each<[string, Told, string, string]>([
    ["visitors in the first verdict", {}, "misfire", "May be a misfire"],
    ["visitors after half an hour", { look: "half-hour" }, "misfire", "Looks like a misfire"],
    ["visitors who go on", { look: "six-hours", lasting: 0.2 }, "misfire", "Misfire"],
    ["visitors who go on for a day", { look: "day", lasting: 1 }, "misfire", "Misfire"],
    ["visitors who stopped", { look: "six-hours", lasting: 0.19 }, "misfire", "Looked like a misfire"],
    ["many new networks with injections", ATTACK, "attack", "Probably an attack"],
    ["one address on many paths", SCANNER, "scanner", "Scanner"],
    ["one address with one request", BROKEN_CLIENT, "broken-client", "Broken client"],
    ["a crawler of a verified operator", { ...CRAWLER, ...NAMED }, "crawler", "Verified crawler"],
    ["a regular crawler of nobody", CRAWLER, "crawler", "Probably a crawler"],
    [
      "a crawler of new networks",
      { ...CRAWLER, usual: { asns: new Set() } },
      "unclear",
      "Unclear: attack or crawler",
    ],
    ["a crawler that names another's agent", FALSE_CRAWLER, "unclear", "Unclear: attack or crawler"],
  ])("of %s is said with its title", (_, told, said, title) => {
    expect(judge(told)).toMatchObject({ said, title });
  });

  test("gives a note before a misfire as its first reason, and changes no odds because of it", () => {
    const began = 'began 4 min after "deploy 1.4.2"';
    expect(judge({ began })).toEqual({ ...judge({}), for: [`It ${began}.`, judge({}).for[0]] });
    expect(judge({ ...ATTACK, began })).toEqual(judge(ATTACK));
  });

  test("says attack for a scan with 120 requests of each address, with the scan as its first reason", () => {
    expect(judge({ ...SCANNER, number: 119 }).said).toBe("scanner");
    const deep = judge({ ...SCANNER, number: 120 });
    expect(deep).toMatchObject({ said: "attack", title: "Probably an attack" });
    expect(deep.against).not.toMatch(/idiom/);
    expect(deep.for[0]).toBe("It is a deep scan: 1 address sent 120 requests to 120 paths.");
    expect(judge({ ...BROKEN_CLIENT, number: 500 }).said).toBe("broken-client");
  });

  test("says attack for a scan that mostly tries injections, however few its requests are", () => {
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
    expect(scan(10).against).not.toMatch(/idiom/);
    expect(scan(10).for[0]).toBe("50 % of 20 requests with a record hold an idiom of attacks.");
    expect(judge({ ...BROKEN_CLIENT, number: 20 }).said).toBe("broken-client");
  });

  test("says scanner if most requests are of a tool that names itself, with this as its first reason", () => {
    const verdict = judge({
      ...BROKEN_CLIENT,
      event: () => ({ ip: "198.51.100.7", ua: "sqlmap/1.8", url: "/a" }),
    });
    expect(verdict).toMatchObject({ said: "scanner", likeliest: "scanner" });
    expect(verdict.for[0]).toBe(
      "All of 174 requests with a record are of a tool that searches sites for weaknesses.",
    );
  });

  test.each<[string, number, boolean, string]>([
    ["tries texts without a session", 3, false, "attack"],
    ["tries texts with a session", 60, true, "attack"],
    ["repeats a text with a session", 1, true, "unclear"],
  ])("of a program that %s with idioms says what it is", (_, texts, hasSession, said) => {
    const request = (index: number) => ({
      matched: `' or ${index % texts}=1`,
      hasSession,
      hasOwnReferer: false,
    });
    const verdict = judge({ ...BROKEN_CLIENT, number: 180, request });
    expect(verdict.said).toBe(said);
    expect(verdict.odds < SURE_ODDS || said === "unclear").toBe(true);
  });

  test("says broken client for a page that repeats a text twenty times with the session of its visitor", () => {
    const tab = (number: number) =>
      judge({
        number,
        event: () => ({ ip: "198.51.100.7", asn: "1", ua: "Mozilla/5.0", url: "/cart" }),
      });
    expect(tab(19).likeliest).toBe("misfire");
    expect(tab(20)).toMatchObject({ said: "broken-client", likeliest: "broken-client" });
  });

  test("is what the model describes", () => {
    for (const told of [{}, ATTACK, SCANNER, BROKEN_CLIENT, CRAWLER, { number: 0, request: null }])
      expect(storedVerdict.parse(judge(told))).toEqual(judge(told));
  });

  test("lasts only in the verdicts at 6 and 24 hours", () => {
    const lasts = VERDICT_TIMES.map((look) => judge({ look, lasting: 0.9 }).isLasting);
    expect(lasts).toEqual([false, false, false, false, true, true]);
    expect(judge({ look: "day", lasting: null }).isLasting).toBe(false);
  });

  test("says why, why not, who, and what to do with figures", () => {
    expect(judge(ATTACK)).toMatchObject({
      for: [
        "All of 120 requests with a record hold an idiom of attacks.",
        "Nearly all requests have one TLS fingerprint (JA4), as those of one tool do.",
      ],
      against: "None of 120 requests repeat the same text on the same path from the same address.",
      who: "120 addresses of 120 networks; none of the networks is usual here.",
      nextStep:
        "120 of 120 requests in 1 h got through. Block what the addresses have in common, such as a network or JA4. Or switch rule 942440 to blocking.",
    });
    expect(judge()).toMatchObject({
      who: "40 addresses of 4 networks; 4 of the networks are usual here.",
      nextStep:
        "60 of 60 requests in 1 h were stopped. Look at the sample. If visitors sent it, try the exclusion and mark the alert. The verdict at 2026-11-25 18:00 UTC says whether it lasts.",
    });
    expect(judge({ ...ATTACK, ruleId: null, event: () => ({ ip: "203.0.113.7" }) }).nextStep).toBe(
      "None of 120 requests in 1 h got through. Check what else the addresses requested.",
    );
  });

  test("names no number as a reason whose weight separates other classes", () => {
    for (const told of [{}, ATTACK, SCANNER, BROKEN_CLIENT, CRAWLER]) {
      const { for: reasons, against } = judge(told);
      expect([...reasons, against].join(" ")).not.toMatch(
        /own host|JA4\) that is usual|rules within 24 hours on average|paths that are usual/,
      );
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

  test("says without any evidence what its start says", () => {
    const bare = judge({ number: 0, request: null, usual: { days: 0, hasCookies: false } });
    expect(sumOf(bare)).toBe(bare.start);
    expect(bare).toMatchObject({ said: "unclear", likeliest: "attack", counts: { requests: 0, events: 0 } });
  });

  test.each<[string, Told]>([
    ["visitors", {}],
    ["visitors with idioms", { request: (index) => ({ matched: index % 9 === 0 ? "' or 1=1" : "a" }) }],
    ["attackers", ATTACK],
    ["attackers without records", { ...ATTACK, request: null }],
    ["a scanner", SCANNER],
    ["a deep scan", { ...SCANNER, number: 120 }],
    ["a broken client", BROKEN_CLIENT],
    ["a crawler of nobody", CRAWLER],
    ["a crawler of a verified operator", { ...CRAWLER, ...NAMED }],
  ])("of %s has reasons that sum, with the start, to the odds before these are cut", (_, told) => {
    const verdict = judge(told);
    const evidence = evidenceOf(told);
    const { features, counts } = computeFeatures(evidence, groupRequests(evidence.events));
    const exact = { ...oddsOf(features, SHIPPED_WEIGHTS, counts.records === 0 ? 0.5 : 1) };
    if (verdict.for[0]?.startsWith("It is a deep scan") === true)
      [exact.attack, exact.scanner] = [exact.scanner, exact.attack];
    if (verdict.crawler !== null)
      Object.assign(exact, { crawler: 0.95, misfire: 0.05, attack: 0, scanner: 0 });
    const isHostile = (name: string) => name === "attack" || name === "scanner";
    // A class is compared with the likeliest of the other side, one that is refused with an attack.
    const side = VERDICT_CLASSES.filter((name) => isHostile(name) !== isHostile(verdict.likeliest));
    const others = side.some((name) => exact[name] > 0) ? side : (["misfire"] as const);
    const isRefused = verdict.said === "unclear" && verdict.against !== null;
    const rival = isRefused ? exact.attack : Math.max(...others.map((name) => exact[name]));
    expect(sumOf(verdict)).toBeCloseTo(Math.log(exact[verdict.likeliest] / rival), 9);
  });

  test("leaves out senders that send as much as before, and says how many events are theirs", () => {
    const event = (index: number) =>
      index < 120 ? { ...ATTACK.event?.(index) } : { ip: `198.51.100.${index % 40}` };
    const usualSenders = new Map(Array.from({ length: 40 }, (_, index) => [`198.51.100.${index}`, 2]));
    const told = { ...ATTACK, number: 200, event, usualSenders, usualPerHour: 80 };
    expect(judge(told)).toMatchObject({
      said: "attack",
      counts: { events: 120, requests: 120, addresses: 120 },
      background: { events: 80, perHour: 80 },
    });
    // Whoever sends more than one and a half times as much rose.
    const louder = judge({ ...told, usualSenders: new Map([["198.51.100.0", 0]]) });
    expect(louder).toMatchObject({ counts: { events: 200 }, background: { events: 0 } });
    // A wave of nothing but usual senders is judged itself.
    const wave = judge({ usualSenders, usualPerHour: 80 });
    expect(wave).toMatchObject({ counts: { events: 60 }, background: { events: 0, perHour: 80 } });
  });

  test("reads of a request what its other rules say: that it was stopped, and that it attacks", () => {
    const told = { event: () => ({ action: "logged" as const }) };
    const others = evidenceOf(told)
      .events.slice(0, 30)
      .map((event, index) => ({
        ...event,
        ruleId: "949110",
        action: "blocked" as const,
        facts: { ...NO_FACTS, hasIdiom: index < 20 },
        url: index === 0 ? "https://shop.example/elsewhere" : event.url,
      }));
    const { counts } = judge({ ...told, others });
    expect(counts).toMatchObject({ events: 60, requests: 60, blocked: 29, logged: 31 });
    expect(counts).toMatchObject({ hostile: 19, hostileThrough: 0 });
  });

  test("calls no request through whose fate is not known", () => {
    const actions = ["logged", "other", "blocked"] as const;
    const verdict = judge({
      ...ATTACK,
      event: (index) => ({ ...ATTACK.event?.(index), action: actions[index % 3] ?? "logged" }),
    });
    expect(verdict.counts).toMatchObject({ logged: 40, other: 40, blocked: 40, hostileThrough: 40 });
    expect(verdict.nextStep).toContain(
      "40 of 120 requests in 1 h got through. The fate of 40 is not known. Block",
    );
    const unknown = judge({
      ...ATTACK,
      event: (index) => ({ ...ATTACK.event?.(index), action: "other" as const }),
    });
    expect(unknown.nextStep).toContain(
      "None of 120 requests in 1 h got through. The fate of 120 is not known.",
    );
    expect(unknown.nextStep).not.toContain("Check what else");
  });

  /** An attack of these addresses beside four visitors with sessions, all of them on one form. */
  const nextStepOf = (...attackers: string[]) =>
    judge({
      ...ATTACK,
      number: 100,
      event: (index) => ({
        ...ATTACK.event?.(index),
        ip: index < 8 ? `198.51.100.${index % 4}` : (attackers[index % attackers.length] ?? ""),
      }),
      request: (index) =>
        index < 8
          ? { matched: "it's -- ours", hasSession: true, hasOwnReferer: true, hasIdiom: false }
          : { matched: "' or 1=1", hasSession: false, hasOwnReferer: false },
    });

  test.each<[string, string[], string]>([
    ["one attacker", ["203.0.113.9"], "Block the address."],
    ["three attackers", ["203.0.113.7", "203.0.113.8", "203.0.113.9"], "Block the 3 addresses."],
    ["an IPv6 attacker", ["2001:db8::1"], "Block the address."],
    ["attackers with masked addresses", ["203.0.113.*"], "Switch rule"],
    ["attackers with masked last numbers", ["203.0.113.0"], "Switch rule"],
    ["attackers without addresses", ["0.0.0.0"], "Switch rule"],
  ])("of %s among four visitors says whom to block, and names no visitor", (_, attackers, step) => {
    const { said, nextStep } = nextStepOf(...attackers);
    expect(said).toBe("attack");
    expect(nextStep).toContain(` got through. ${step}`);
  });

  test("never calls anything safe or a botnet, and quotes no request", () => {
    for (const told of [{}, ATTACK, SCANNER, BROKEN_CLIENT, { ...CRAWLER, ...NAMED }])
      for (const look of VERDICT_TIMES) {
        const { title, for: reasons, against, who, nextStep } = judge({ ...told, look });
        const text = [title, ...reasons, against, who, nextStep].join(" ");
        expect(text).not.toMatch(/safe|botnet|shop\.example|1=1|Mozilla|compatible|undefined|NaN|null/i);
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
    [
      "of one browser without headers in the records",
      { request: () => ({ hasSession: null, hasOwnReferer: null }), event: () => ({ ja4: "t13d1516h2" }) },
    ],
  ])("visitors %s are no misfire that may lower a severity, and no attack that may raise one", (_, told) => {
    const verdict = judge(told);
    expect(verdict.classes.misfire).toBeLessThan(SURE_ODDS);
    expect(sumOf(verdict)).toBeLessThan(sumOf(judge()));
    expect(verdict.classes.attack).toBeLessThan(0.5);
  });

  test("visitors without records are no misfire at any time", () => {
    for (const look of VERDICT_TIMES) expect(judge({ look, request: null }).said).toBe("unclear");
  });

  test("many browsers without headers are a misfire, except where bots try passwords and cards", () => {
    const saidOn = (url: string, ja4?: string) =>
      judge({
        event: () => ({ url, ...(ja4 === undefined ? {} : { ja4 }) }),
        request: () => ({ hasSession: null, hasOwnReferer: null }),
        usual: { hasCookies: false },
      }).said;
    expect(saidOn("/reviews/1")).toBe("misfire");
    expect(saidOn("/account/login")).toBe("unclear");
    expect(saidOn("/checkout/card")).toBe("unclear");
    expect(saidOn("/reviews/1", "t13d1516h2")).toBe("unclear");
  });

  test("visitors on the first day are less surely a misfire, and no attack", () => {
    const verdict = judge({ usual: { days: 0, asns: new Set(), ja4s: new Set(), paths: new Set() } });
    expect(sumOf(verdict)).toBeLessThan(sumOf(judge()));
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
    for (const ip of ["", "0.0.0.0"])
      expect(judge({ event: () => ({ ip }) }).who).toBe("The addresses are not known; 4 networks.");
    expect(judge({ event: () => ({ ip: "", asn: "" }) }).who).toBe("The addresses are not known.");
  });
});

describe("an attacker", () => {
  /** Home networks, everyday paths, a forged cookie and referer. */
  const forged = (matched: string): Told => ({
    request: (index) => ({ matched: index % 10 === 0 ? matched : "a -- b" }),
  });

  test.each(VERDICT_TIMES)(
    "that forges every header is no misfire in the verdict %s while idioms are sent",
    (look) => {
      const verdict = judge({ ...forged("1 union select name from users"), look, lasting: 1 });
      expect(verdict).toMatchObject({ said: "unclear", title: "Unclear: attack or misfire" });
      expect(verdict.against).toBe("10 % of 60 requests with a record hold an idiom of attacks.");
      expect(judge({ ...forged("no idiom"), look, lasting: 1 }).said).toBe("misfire");
    },
  );

  test.each(VERDICT_TIMES)(
    "that repeats every request is no broken client in the verdict %s while idioms are sent",
    (look) => {
      for (const share of [1, 2, 10]) {
        const matched = (index: number) => (index % share === 0 ? "<script>alert(1)</script>" : "a -- b");
        const verdict = judge({ ...BROKEN_CLIENT, look, request: (index) => ({ matched: matched(index) }) });
        expect(["attack", "scanner", "unclear"]).toContain(verdict.said);
      }
    },
  );

  test("with an agent that says bot is no crawler", () => {
    const verdict = judge({ ...ATTACK, event: (index) => ({ ...ATTACK.event?.(index), ua: "Examplebot" }) });
    expect(verdict.said).not.toBe("crawler");
  });

  test("with the name of a verified operator is no crawler while idioms are sent", () => {
    for (const look of VERDICT_TIMES) {
      const { said } = judge({ ...ATTACK, ...NAMED, look });
      expect(["attack", "unclear"]).toContain(said);
    }
  });

  test.each([
    ["minute", "half-hour", 6, 0.75, 0.8],
    ["half-hour", "six-hours", 5, 0.7, 0.75],
  ] as const)(
    "needs better odds for a misfire in the verdict %s than in the verdict %s",
    (early, late, sessions, low, high) => {
      const between = {
        event: () => ({ ja4: "t13d1516h2" }),
        request: (index: number) => ({ hasSession: index % 20 < sessions }),
      };
      const first = judge({ ...between, look: early });
      const benign = 1 - first.classes.attack - first.classes.scanner;
      expect(benign).toBeGreaterThan(low);
      expect(benign).toBeLessThan(high);
      expect(first).toMatchObject({ said: "unclear", likeliest: "misfire" });
      expect(judge({ ...between, look: late }).said).toBe("misfire");
    },
  );

  test("needs the same odds for a misfire in both verdicts of a pair", () => {
    const saidAt = (look: StoredVerdict["look"], sessions: number) =>
      judge({
        look,
        event: () => ({ ja4: "t13d1516h2" }),
        request: (index) => ({ hasSession: index % 20 < sessions }),
      }).said;
    const pairs = [
      ["first", "minute"],
      ["five-minutes", "half-hour"],
      ["six-hours", "day"],
    ] as const;
    for (const [one, other] of pairs)
      for (let sessions = 0; sessions < 20; sessions += 1)
        expect(saidAt(one, sessions)).toBe(saidAt(other, sessions));
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
      fc.constantFrom(...VERDICT_TIMES),
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
