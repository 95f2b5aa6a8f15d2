import { describeIncident } from "#alerts/rules/message/describe-incident.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { SOURCES_RULE, type StoredSources } from "#model/stored-sources.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { SCANNER } from "../../alerts/incident.ts";
import { HOSTILE } from "./hostile.ts";

const STARTED_AT = Date.UTC(2026, 10, 21, 14, 3);

/** A spike as on-call would see it. */
export function messageOf(over: Partial<AlertMessage> = {}): AlertMessage {
  return {
    alertId: 7,
    fingerprint: "f1c0ffee",
    dedupeKey: "episode-7",
    transition: 1,
    reason: "first",
    state: "firing",
    severity: "critical",
    kind: "spike",
    zoneId: 101,
    ruleId: "942100",
    ruleTitle: "SQL injection detected via libinjection",
    headline: "SQL injection attempts on zone 101 are 68 times their usual rate",
    startedAt: STARTED_AT,
    endedAt: null,
    windowMinutes: 5,
    count: 847,
    usual: 12.4,
    threshold: 45.2,
    score: 9.37,
    peak: 912,
    times: 68.3,
    actions: { blocked: 700, logged: 147, challenged: 0, other: 0 },
    top: {
      ips: [
        { value: "203.0.113.7", count: 612, share: 0.7226 },
        { value: "198.51.100.*", count: 101, share: 0.1192 },
        { value: "2001:db8::beef", count: 44, share: 0.0519 },
        { value: "192.0.2.1", count: 9, share: 0.0106 },
      ],
      asns: [{ value: "AS64500 Example Hosting", count: 713, share: 0.8418 }],
      countries: [
        { value: "NL", count: 640, share: 0.7556 },
        { value: "BR", count: 120, share: 0.1417 },
      ],
      paths: [
        { value: "/wp-login.php?redirect=%2F", count: 801, share: 0.9457 },
        { value: "/search?q=1'+OR+'1'='1", count: 30, share: 0.0354 },
      ],
      userAgents: [{ value: "sqlmap/1.8.2#stable (https://sqlmap.org)", count: 790, share: 0.9327 }],
      ja4s: [{ value: "t13d1516h2_8daaf6152771_b186095e22b6", count: 790, share: 0.9327 }],
    },
    sparkline: [3, 2, 0, 4, 1, 2, 3, 2, 5, 2, 1, 3, 40, 210, 412, 847],
    advice: {
      state: "present",
      // With marks of Markdown, which no channel shows.
      text: "Most requests come from **one network** and _one tool_.\n\n1. Block `AS64500` for an hour.\n2. Keep the rule in blocking mode; it already stops 83 % of the requests.",
      reason: null,
    },
    links: [
      { title: "Runbook SQLi", url: "https://wiki.example/runbooks/sqli?rule=942100" },
      {
        title: "Zone dashboard",
        url: `https://grafana.example/d/waf/zone_traffic?var-zone=101&from=${STARTED_AT - 3_600_000}&to=${STARTED_AT + 60_000}`,
      },
    ],
    howToSilence: "longwatch silences add --zone 101 --rule 942100 --for 2h",
    ...over,
  };
}

const SINCE = STARTED_AT / 60_000;

/** A scanner and the fingerprint of its tool, which a second address has too. */
const attacker = { ...SCANNER, key: "203.0.113.7", since: SINCE, lastFiredAt: SINCE + 4 };
const SOURCES: StoredSources = {
  kind: "rules_per_ip",
  findings: [
    attacker,
    {
      ...attacker,
      kind: "ips_per_ja4",
      key: "t13d1516h2_8daaf6152771",
      members: 214,
      windowMinutes: 60,
      count: 214,
      usual: 40.1,
      threshold: 95.5,
      score: 4.4,
      since: SINCE + 3,
      role: "facet",
    },
  ],
  unnamed: 0,
  grown: [
    { dimension: "asn", value: "AS64500 Example Hosting", now: 187, before: 0 },
    { dimension: "rule", value: "942100", now: 96, before: 11 },
  ],
  rules: [
    { value: "942100", count: 31 },
    { value: "941100", count: 22 },
  ],
  events: 187,
  isMasked: false,
};

/** The alert of an incident. */
export function sourcesMessage(over: Partial<AlertMessage> = {}): AlertMessage {
  const { title, finding, details, unit, attackers } = describeIncident({
    sources: SOURCES,
    attacking: SOURCES.findings,
    closedAtMs: null,
  });
  return messageOf({
    kind: "sources",
    ruleId: SOURCES_RULE,
    ruleTitle: null,
    headline: `${title} in zone 101: ${finding}`,
    details: [...details],
    unit,
    attackers,
    actions: { blocked: 0, logged: 0, challenged: 0, other: 0 },
    windowMinutes: 15,
    count: 41,
    usual: 4.2,
    threshold: 16.3,
    score: 5.1,
    peak: 41,
    times: 9.76,
    howToSilence: "longwatch silences add --zone 101 --rule='(sources)' --for 2h --reason 'why'",
    ...over,
  });
}

/** An alert about a rule that begins to block, and about one that is silent. */
export function changesMessage(over: Partial<AlertMessage> = {}): AlertMessage {
  return messageOf({
    kind: "action-change",
    severity: "warning",
    ruleId: "(action-change)",
    ruleTitle: null,
    rules: ["942100"],
    headline:
      "SQL injection: rule 942100 in zone 101 blocks since 14:03 UTC: 6 of 6 events of 4 addresses; before, 98 % of 1,204 were logged",
    actions: { blocked: 6, logged: 0, challenged: 0, other: 0 },
    windowMinutes: 60,
    count: 6,
    usual: 0,
    threshold: 0,
    score: 0,
    peak: 6,
    times: null,
    sparkline: [],
    howToSilence:
      "longwatch silences add --zone 101 --rule=942100 --kind action-change --for 2h --reason 'why'",
    ...over,
  });
}

/** The verdict as a message has it. */
function messageVerdict(over: Partial<StoredVerdict> = {}): AlertMessage["verdict"] {
  return alertMessage.shape.verdict.parse(verdictOf(over));
}

/** Each sentence of the verdict and its request, from first to last as a person should read them. */
export const VERDICT_ORDER = [
  "Probably an attack",
  "All 4 addresses are triggering",
  "4 addresses send the events",
  "147 of 847 requests",
  "/login?next=%2F",
  "' or 1=1",
  "4 addresses of 2 networks",
  "Block the 4 addresses",
  "847 in 5 minutes against usual 12",
  "longwatch alerts ack 7",
  "longwatch silences add",
];

/** A spike with its verdict. */
export function verdictMessage(over: Partial<AlertMessage> = {}): AlertMessage {
  return messageOf({ verdict: messageVerdict(), marked: "a misfire on 3 and 9 November", ...over });
}

/** The alert of an incident with so many rules, from 100000 on, each smaller than the one before. */
export function incidentWith(
  rules: number,
  over: Partial<AlertMessage> = {},
  member: (index: number) => Partial<NonNullable<AlertMessage["members"]>[number]> = () => ({}),
): AlertMessage {
  const members = Array.from({ length: rules }, (_, index) => ({
    zoneId: 101,
    ruleId: String(100_000 + index),
    severity: "error" as const,
    count: 2 * rules - index,
    windowMinutes: 5,
    usual: 12,
    ...member(index),
  }));
  return messageOf({
    kind: "sources",
    ruleId: SOURCES_RULE,
    ruleTitle: null,
    headline: "2 attackers in zone 101: 203.0.113.7, 198.51.100.9 attack now",
    advice: { state: "unavailable", text: null, reason: null },
    howToSilence: null,
    howToList: "longwatch alerts list --incident 7 --state all",
    members,
    ...over,
  });
}

/** Ours, and the only link that may be live. */
export const CONSOLE = "https://console.example/alerts/7";

/** Every text of a message replaced; numbers and our own keys stay. */
export function messageSaying(text: string, over: Partial<AlertMessage> = {}): AlertMessage {
  const rows = [0.5, 0.3, 0.2].map((share) => ({ value: text, count: Math.round(share * 1_000), share }));
  return messageOf({
    ruleId: text,
    ruleTitle: text,
    headline: text,
    details: [text],
    top: { ips: rows, asns: rows, countries: rows, paths: rows, userAgents: rows, ja4s: rows },
    advice: { state: "present", text, reason: text },
    links: [{ title: text, url: CONSOLE }],
    howToSilence: text,
    verdict: verdictSaying(text),
    marked: text,
    ...over,
  });
}

function verdictSaying(text: string): AlertMessage["verdict"] {
  const { sample } = verdictOf();
  const request = sample && {
    ...sample,
    logId: text,
    ip: text,
    method: text,
    url: text,
    ruleId: text,
    action: text,
    parameter: text,
    matched: text,
  };
  return messageVerdict({
    title: text,
    for: [text, text],
    against: text,
    missing: [text],
    who: text,
    nextStep: text,
    crawler: text,
    sample: request,
  });
}

/** One hostile text per place, so that a golden file shows each in each. */
export function hostileMessage(over: Partial<AlertMessage> = {}): AlertMessage {
  const rows = (texts: readonly string[]) =>
    texts.map((value, index) => ({ value, count: 100 - index, share: 0.3 - index / 10 }));
  const { sample: request } = { sample: verdictOf().sample as NonNullable<StoredVerdict["sample"]> };
  const { ansi, bidi, slack, markdown, html, lines, zeroWidth, marks, wide, links, csv, halves } = HOSTILE;
  return messageOf({
    ruleId: ansi,
    ruleTitle: bidi,
    headline: `${slack} ${lines}`,
    top: {
      ips: rows([ansi, csv]),
      asns: rows([bidi, zeroWidth]),
      countries: rows([html, halves]),
      paths: rows([slack, markdown, links]),
      userAgents: rows([wide, marks]),
      ja4s: rows([lines]),
    },
    advice: { state: "present", text: Object.values(HOSTILE).join("\n"), reason: null },
    links: [
      { title: `${slack}|${ansi}`, url: "https://console.example/a|b>c<d?x=<!channel>&y=*_~`" },
      { title: "script", url: "javascript:alert(1)" },
      { title: "user", url: "https://user:pass@console.example/" },
    ],
    howToSilence: `longwatch silences add --rule '${slack}' ${ansi}`,
    verdict: messageVerdict({
      crawler: bidi,
      sample: {
        ...request,
        url: markdown,
        ruleId: ansi,
        parameter: slack,
        matched: html,
      },
    }),
    ...over,
  });
}
