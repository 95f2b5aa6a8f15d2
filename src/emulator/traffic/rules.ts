/** The attack class of a rule, which decides the payloads of its events. */
export type Family =
  | "scanner"
  | "protocol"
  | "lfi"
  | "rfi"
  | "rce"
  | "php"
  | "generic"
  | "xss"
  | "sqli"
  | "session"
  | "java"
  | "rate"
  | "bot";

export type Action = "block" | "log" | "challenge";

export interface Rule {
  readonly ruleId: string;
  readonly family: Family;
  /** One of the platform's protections: waf, rateLimit, botDetection. */
  readonly feature: string;
  /** The rule's name, which the platform logs as `Message`. */
  readonly message: string;
  /** Share of the zone's traffic, relative to the other rules. 0 for sparse rules. */
  readonly weight: number;
  /** Sparse rules: events per day, whatever the zone's rate. */
  readonly perDay: number;
  /** Cumulative shares of block and log; the rest is challenged. */
  readonly blockShare: number;
  readonly logShare: number;
}

function common(ruleId: string, family: Family, message: string, weight: number, logShare = 0.2): Rule {
  const blockShare = 0.97 - logShare;
  return { ruleId, family, feature: "waf", message, weight, perDay: 0, blockShare, logShare };
}

function sparse(ruleId: string, family: Family, message: string, perDay: number): Rule {
  return { ruleId, family, feature: "waf", message, weight: 0, perDay, blockShare: 0.8, logShare: 0.2 };
}

/** Append only: an event's key holds the position of its rule. */
export const RULES: readonly Rule[] = [
  common("913100", "scanner", "Found User-Agent associated with security scanner", 14),
  common("920350", "protocol", "Host header is a numeric IP address", 16, 0.6),
  common("930130", "lfi", "Restricted File Access Attempt", 18),
  common("931100", "rfi", "Possible Remote File Inclusion (RFI) Attack: URL Parameter using IP Address", 3),
  common("932100", "rce", "Remote Command Execution: Unix Command Injection", 6),
  common("933150", "php", "PHP Injection Attack: High-Risk PHP Function Name Found", 5),
  common("934100", "generic", "Node.js Injection Attack 1/2", 3),
  common("941100", "xss", "XSS Attack Detected via libinjection", 9),
  common("942100", "sqli", "SQL Injection Attack Detected via libinjection", 10),
  common("942200", "sqli", "Detects MySQL comment-/space-obfuscated injections and backtick termination", 4),
  common("943100", "session", "Possible Session Fixation Attack: Setting Cookie Values in HTML", 2, 0.5),
  common("944150", "java", "Potential Remote Command Execution: Log4j / Log4shell", 4),
  {
    ruleId: "1048576",
    family: "rate",
    feature: "rateLimit",
    message: "Login attempts per address",
    weight: 4,
    perDay: 0,
    blockShare: 0.7,
    logShare: 0.1,
  },
  {
    ruleId: "2097153",
    family: "bot",
    feature: "botDetection",
    message: "Automated client without a browser fingerprint",
    weight: 3,
    perDay: 0,
    blockShare: 0.1,
    logShare: 0.3,
  },
  sparse("921110", "protocol", "HTTP Request Smuggling Attack", 9),
  sparse("930100", "lfi", "Path Traversal Attack (/../) or (/.../)", 24),
  sparse("932160", "rce", "Remote Command Execution: Unix Shell Code Found", 4),
  sparse("933100", "php", "PHP Injection Attack: PHP Open Tag Found", 2),
  sparse("941160", "xss", "NoScript XSS InjectionChecker: HTML Injection", 6),
  sparse("942440", "sqli", "SQL Comment Sequence Detected", 1),
  sparse("944100", "java", "Remote Command Execution: Suspicious Java class detected", 0.5),
];

const FAMILY_OF_PREFIX: Record<string, Family> = {
  "913": "scanner",
  "920": "protocol",
  "921": "protocol",
  "930": "lfi",
  "931": "rfi",
  "932": "rce",
  "933": "php",
  "934": "generic",
  "941": "xss",
  "942": "sqli",
  "943": "session",
  "944": "java",
};

const KNOWN = new Map(RULES.map((rule) => [rule.ruleId, rule]));

/** Returns a rule of the table, or an invented one for an attack on a rule without everyday traffic. */
export function ruleById(ruleId: string): Rule {
  const known = KNOWN.get(ruleId);
  if (known !== undefined) return known;
  const family = FAMILY_OF_PREFIX[ruleId.slice(0, 3)] ?? "generic";
  return sparse(ruleId, family, `Custom rule ${ruleId}`, 0);
}
