/** A rule of the rule set, as its public description has it. */
export interface Rule {
  readonly id: string;
  readonly message: string;
  readonly paranoia: 1 | 2;
  /** The points that a match adds to the sum of a request. */
  readonly score: number;
  readonly feature: string;
}

/** One line per rule: number, points, message. The first list is of paranoia level 1, the second of level 2. */
const LEVEL_1 = `
200002 5 Failed to parse request body.
200004 5 Multipart parser detected a possible unmatched boundary.
911100 5 Method is not allowed by policy
913100 5 Found User-Agent associated with security scanner
920120 5 Attempted multipart/form-data bypass
920270 5 Invalid character in request (null character)
920280 3 Request Missing a Host Header
920340 2 Request Containing Content, but Missing Content-Type header
920350 3 Host header is a numeric IP address
920420 5 Request content type is not allowed by policy
920440 5 URL file extension is restricted by policy
920600 5 Illegal Accept header: charset parameter
921110 5 HTTP Request Smuggling Attack
921130 5 HTTP Response Splitting Attack
930100 5 Path Traversal Attack (/../) or (/.../)
930110 5 Path Traversal Attack (/../) or (/.../)
930120 5 OS File Access Attempt
930130 5 Restricted File Access Attempt
931100 5 Possible Remote File Inclusion (RFI) Attack: URL Parameter using IP Address
931120 5 Possible Remote File Inclusion (RFI) Attack: URL Payload Used w/Trailing Question Mark Character (?)
932100 5 Remote Command Execution: Unix Command Injection
932105 5 Remote Command Execution: Unix Command Injection
932110 5 Remote Command Execution: Windows Command Injection
932115 5 Remote Command Execution: Windows Command Injection
932130 5 Remote Command Execution: Unix Shell Expression Found
932140 5 Remote Command Execution: Windows FOR/IF Command Found
932150 5 Remote Command Execution: Direct Unix Command Execution
932160 5 Remote Command Execution: Unix Shell Code Found
932171 5 Remote Command Execution: Shellshock (CVE-2014-6271)
932180 5 Restricted File Upload Attempt
933100 5 PHP Injection Attack: PHP Open Tag Found
933110 5 PHP Injection Attack: PHP Script File Upload Found
933130 5 PHP Injection Attack: Variables Found
933140 5 PHP Injection Attack: I/O Stream Found
933150 5 PHP Injection Attack: High-Risk PHP Function Name Found
933160 5 PHP Injection Attack: High-Risk PHP Function Call Found
933210 5 PHP Injection Attack: Variable Function Call Found
934100 5 Node.js Injection Attack 1/2
934110 5 Possible Server Side Request Forgery (SSRF) Attack: Cloud provider metadata URL in Parameter
941100 5 XSS Attack Detected via libinjection
941110 5 XSS Filter - Category 1: Script Tag Vector
941120 5 XSS Filter - Category 2: Event Handler Vector
941130 5 XSS Filter - Category 3: Attribute Vector
941140 5 XSS Filter - Category 4: Javascript URI Vector
941160 5 NoScript XSS InjectionChecker: HTML Injection
941170 5 NoScript XSS InjectionChecker: Attribute Injection
941180 5 Node-Validator Deny List Keywords
941210 5 IE XSS Filters - Attack Detected
941240 5 IE XSS Filters - Attack Detected
941310 5 US-ASCII Malformed Encoding XSS Filter - Attack Detected
942100 5 SQL Injection Attack Detected via libinjection
942140 5 SQL Injection Attack: Common DB Names Detected
942160 5 Detects blind sqli tests using sleep() or benchmark()
942190 5 Detects MSSQL code execution and information gathering attempts
942230 5 Detects conditional SQL injection attempts
942280 5 Detects Postgres pg_sleep injection, waitfor delay attacks and database shutdown attempts
942350 5 Detects MySQL UDF injection and other data/structure manipulation attempts
942360 5 Detects concatenated basic SQL injection and SQLLFI attempts
942500 5 MySQL in-line comment detected
944100 5 Remote Command Execution: Suspicious Java class detected
944110 5 Remote Command Execution: Java process spawn (CVE-2017-9805)
944130 5 Suspicious Java class detected
944150 5 Potential Remote Command Execution: Log4j / Log4shell
950130 5 Directory Listing
951120 5 Oracle SQL Information Leakage
951230 5 mysql SQL Information Leakage
951240 5 postgres SQL Information Leakage
952110 5 Java Errors
953100 5 PHP Information Leakage
953110 5 PHP source code leakage`;

const LEVEL_2 = `
913101 5 Found User-Agent associated with scripting/generic HTTP client
920121 5 Attempted multipart/form-data bypass
920230 3 Multiple URL Encoding Detected
920271 5 Invalid character in request (non printable characters)
920300 2 Request Missing an Accept Header
920320 2 Missing User Agent Header
921151 5 HTTP Header Injection Attack via payload (CR/LF detected)
931130 5 Possible Remote File Inclusion (RFI) Attack: Off-Domain Reference/Link
932200 5 RCE Bypass Technique
933151 5 PHP Injection Attack: Medium-Risk PHP Function Name Found
941150 5 XSS Filter - Category 5: Disallowed HTML Attributes
941320 5 Possible XSS Attack Detected - HTML Tag Handler
941330 5 IE XSS Filters - Attack Detected
941340 5 IE XSS Filters - Attack Detected
941380 5 AngularJS client side template injection detected
942110 3 SQL Injection Attack: Common Injection Testing Detected
942120 5 SQL Injection Attack: SQL Operator Detected
942130 5 SQL Injection Attack: SQL Boolean-based attack detected
942150 5 SQL Injection Attack: SQL function name detected
942180 5 Detects basic SQL authentication bypass attempts 1/3
942200 5 Detects MySQL comment-/space-obfuscated injections and backtick termination
942210 5 Detects chained SQL injection attempts 1/2
942260 5 Detects basic SQL authentication bypass attempts 2/3
942300 5 Detects MySQL comments, conditions and ch(a)r injections
942310 5 Detects chained SQL injection attempts 2/2
942330 5 Detects classic SQL injection probings 1/3
942340 5 Detects basic SQL authentication bypass attempts 3/3
942361 5 Detects basic SQL injection based on keyword alter or union
942370 5 Detects classic SQL injection probings 2/3
942380 5 SQL Injection Attack
942390 5 SQL Injection Attack
942400 5 SQL Injection Attack
942410 5 SQL Injection Attack
942430 3 Restricted SQL Character Anomaly Detection (args): # of special characters exceeded (12)
942440 5 SQL Comment Sequence Detected
942450 5 SQL Hex Encoding Identified
942470 5 SQL Injection Attack
942480 5 SQL Injection Attack
942510 5 SQLi bypass attempt by ticks or backticks detected
944250 5 Remote Command Execution: Suspicious Java method detected`;

/** Rules that add up the others, and those of the platform's other protections. */
const OTHERS: readonly Rule[] = [
  { id: "949110", message: "Inbound Anomaly Score Exceeded", paranoia: 1, score: 0, feature: "waf" },
  { id: "959100", message: "Outbound Anomaly Score Exceeded", paranoia: 1, score: 0, feature: "waf" },
  { id: "980130", message: "Inbound Anomaly Score Exceeded (Total)", paranoia: 1, score: 0, feature: "waf" },
  { id: "1048600", message: "Too many logins of an address", paranoia: 1, score: 0, feature: "rateLimit" },
  { id: "1048601", message: "Too many requests of an address", paranoia: 1, score: 0, feature: "rateLimit" },
  { id: "2097160", message: "Automated client", paranoia: 1, score: 0, feature: "botDetection" },
];

function readRules(list: string, paranoia: Rule["paranoia"]): Rule[] {
  return list
    .trim()
    .split("\n")
    .map((line) => {
      const [, id = "", score = "", message = ""] = /^(\d+) (\d+) (.+)$/.exec(line) ?? [];
      return { id, message, paranoia, score: Number(score), feature: "waf" };
    });
}

const RULES = new Map(
  [...readRules(LEVEL_1, 1), ...readRules(LEVEL_2, 2), ...OTHERS].map((rule) => [rule.id, rule]),
);

/** @throws {RangeError} when the rule set has no such rule. */
export function ruleOf(id: string): Rule {
  const rule = RULES.get(id);
  if (rule === undefined) throw new RangeError(`rule ${id} is not in the rule set of rules.ts`);
  return rule;
}

/** Returns whether the rule judges what the site answered. */
export const isResponseRule = (id: string) => /^95[0-4]/.test(id);
