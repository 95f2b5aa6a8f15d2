import { VERDICT_FEATURES } from "#model/kinds.ts";
import { NO_FACTS, type RequestDetails } from "#model/request-facts.ts";
import type { Features } from "#model/verdict.ts";
import type { NearbyRule, VerdictEvent, VerdictEvidence } from "#stages/detection/verdict/evidence.ts";

const OPENED = Date.UTC(2026, 10, 25, 12);

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
  const detailsOf = (index: number): RequestDetails => ({
    ...NO_FACTS,
    method: "POST",
    parameter: "ARGS:text",
    matched: "see -- the notes",
    hasSession: true,
    hasOwnReferer: true,
    ...request?.(index),
  });
  const events = Array.from({ length: number }, (_, index): VerdictEvent => {
    const sender = index % 40;
    return {
      at: OPENED - index * 1_000,
      logId: `log-${index}`,
      ruleId: "942440",
      ip: `198.51.100.${sender}`,
      asn: String(64_500 + (sender % 4)),
      ja4: "t13d1516h2",
      ua: "Mozilla/5.0",
      url: `https://shop.example/reviews/${index}`,
      action: "blocked",
      facts: request === null ? null : detailsOf(index),
      ...event?.(index),
    };
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
    request === null ? [] : events.slice(0, 200).map(({ logId }, index) => [logId, detailsOf(index)]),
  );
  return {
    look: "first",
    judgedAt: OPENED,
    openedAt: OPENED,
    since: OPENED - 3_600_000,
    ruleId: "942440",
    crawler: null,
    lasting: null,
    ...given,
    events,
    nearby,
    requests,
    usual: {
      asns: new Set(["64500", "64501", "64502", "64503"]),
      ja4s: new Set(["t13d1516h2"]),
      paths: new Set(["/reviews/{n}"]),
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
    ruleId: `93${index % 9}`,
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

/** The evidence's numbers, all of them the same. */
export function featuresOf(value: number | null, given: Partial<Features> = {}): Features {
  const all = Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, value]));
  return { ...(all as Features), ...given };
}
