import type { NearbyRule, VerdictEvent, VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { holdsIdiom, isToolAgent, isToolRule, NO_FACTS, type RequestDetails } from "#model/request-facts.ts";

const OPENED = Date.UTC(2026, 10, 25, 12);
/** Paths without events of the alert. With fewer than five usual paths, no path counts as new. */
export const USUAL_PATHS: readonly string[] = ["/", "/cart", "/checkout", "/products/{n}"];

/** Those of visitors' browsers. */
const JA4S: readonly string[] = ["t13d1516h2", "t13d2014h2", "t13d1717h2"];

/** What a test says about an alert: its events, and what their records and the rules of their addresses are. */
export interface Told extends Omit<Partial<VerdictEvidence>, "events" | "requests" | "nearby" | "usual"> {
  readonly number?: number;
  readonly event?: (index: number) => Partial<VerdictEvent>;
  /** Null: no record was read. */
  readonly request?: ((index: number) => Partial<RequestDetails>) | null;
  /** Rules of each address, on paths of their own; the first one is on the path of the alert. */
  readonly rulesElsewhere?: number;
  readonly usual?: Partial<VerdictEvidence["usual"]>;
}

/** Returns the evidence of visitors with a rich text that a rule matches, changed by what a test says. */
export function evidenceOf(told: Told = {}): VerdictEvidence {
  const { number = 60, event, request = () => ({}), rulesElsewhere = 0, usual, ...given } = told;
  const texts: string[] = [];
  /** Returns the facts as a record with these texts would have them. */
  const detailsOf = (index: number, { url, ua, ruleId }: Omit<VerdictEvent, "facts">): RequestDetails => {
    const match = { parameter: "ARGS:text", matched: "see -- the notes" };
    const { parameter, matched, ...facts } = { ...match, ...request?.(index) };
    const text = `${parameter} ${matched}`;
    if (!texts.includes(text)) texts.push(text);
    return {
      ...NO_FACTS,
      method: "POST",
      matchedKey: matched === null ? null : texts.indexOf(text),
      hasSession: true,
      hasOwnReferer: true,
      hasIdiom: matched === null && !url.includes("?") ? null : holdsIdiom({ url, matched }),
      isTool: isToolRule(ruleId) || isToolAgent(ua),
      parameter,
      matched,
      ...facts,
    };
  };
  const events = Array.from({ length: number }, (_, index): VerdictEvent => {
    const sender = index % 40;
    const columns = {
      at: OPENED - index * 1_000,
      logId: `log-${index}`,
      ruleId: "942440",
      ip: `198.51.100.${sender}`,
      asn: String(64_500 + (sender % 4)),
      ja4: JA4S[sender % 3] ?? "",
      ua: "Mozilla/5.0",
      url: `https://shop.example/reviews/${index}`,
      action: "blocked" as const,
      ...event?.(index),
    };
    return { facts: request === null ? null : detailsOf(index, columns), ...columns };
  });
  const nearby = events.flatMap(({ ip, ruleId }): NearbyRule[] => [
    { ip, ruleId, template: "/reviews/{n}" },
    ...Array.from({ length: rulesElsewhere }, (_, rule) => ({
      ip,
      ruleId: `93${rule}`,
      template: `/elsewhere/${rule}`,
    })),
  ]);
  const requests = new Map(
    request === null ? [] : events.slice(0, 200).map((one, index) => [one.logId, detailsOf(index, one)]),
  );
  return {
    look: "first",
    judgedAt: OPENED,
    openedAt: OPENED,
    since: OPENED - 3_600_000,
    ruleId: "942440",
    crawler: null,
    lasting: null,
    usualSenders: new Map(),
    usualPerHour: null,
    ...given,
    events,
    nearby,
    requests,
    usual: {
      asns: new Set(["64500", "64501", "64502", "64503"]),
      ja4s: new Set(JA4S),
      paths: new Set(["/reviews/{n}", ...USUAL_PATHS]),
      days: 30,
      hasCookies: true,
      ...usual,
    },
  };
}

/** Attackers from many networks that are new here, whose requests the rule only logs. */
export const ATTACK: Told = {
  number: 120,
  event: (index) => ({
    ip: `203.0.113.${index}`,
    asn: String(65_000 + index),
    ja4: "t13i0909",
    url: `https://shop.example/search?id=${index}'%20or%201=1`,
    action: "logged",
  }),
  request: () => ({
    method: "GET",
    parameter: "ARGS:id",
    matched: "' or 1=1",
    hasSession: false,
    hasOwnReferer: false,
  }),
};

/** One address that tries many paths and many rules. */
export const SCANNER: Told = {
  number: 54,
  event: (index) => ({
    ip: "203.0.113.9",
    asn: "65000",
    ja4: "t13i0909",
    url: `https://shop.example/dir${index}/probe${index}.php`,
    ruleId: `93${index % 9}100`,
  }),
  request: () => ({
    method: "GET",
    parameter: null,
    matched: ".bak",
    hasSession: false,
    hasOwnReferer: false,
  }),
  rulesElsewhere: 12,
};

/** One known address that repeats the same request. */
export const BROKEN_CLIENT: Told = {
  number: 174,
  event: () => ({ ip: "198.51.100.7", ua: "sync-client/2", url: "https://shop.example/api/sync" }),
  request: () => ({ hasOwnReferer: false, hasSession: false }),
};

/** A search engine that follows links with a query which the rule matches. */
export const CRAWLER: Told = {
  number: 80,
  event: (index) => ({
    ip: `192.0.2.${index % 5}`,
    asn: "64503",
    ua: "Mozilla/5.0 (compatible; Examplebot/2.1)",
    url: `https://shop.example/list${index % 11}?filter=${index}`,
  }),
  request: () => ({ method: "GET", parameter: "ARGS:filter", hasSession: false, hasOwnReferer: false }),
  usual: { paths: new Set(Array.from({ length: 11 }, (_, index) => `/list${index}`)) },
};
