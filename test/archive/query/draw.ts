import { DAY_MS } from "#lib/units.ts";
import { DIMENSIONS, type Dimension } from "#model/kinds.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";

export const FIRST_DAY = Date.UTC(2026, 2, 1);
export const DAYS = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"] as const;
export const END = FIRST_DAY + DAYS.length * DAY_MS;

/** Texts that break careless code: SQL, LIKE, regular expressions, arrays, COPY, encodings, order. */
export const HOSTILE = [
  "%",
  "_",
  "\\",
  "*",
  "'",
  '"',
  "?",
  ".",
  "(",
  ")",
  "[",
  "]",
  "{",
  "}",
  "|",
  "^",
  "$",
  ",",
  ";",
  "' or 1=1 --",
  "'; drop table waf_events; --",
  String.raw`\' or true --`,
  String.raw`\\`,
  String.raw`a\%b\_c`,
  "100%",
  "a_b",
  "a*b",
  "$1",
  "$$;select pg_sleep(9)$$",
  '{a,NULL,"b"}',
  "NULL",
  "null",
  String.raw`\N`,
  String.raw`\.`,
  "(?:a+)+$",
  "tab\there",
  "\u001F",
  "line\nbreak\r\n",
  "é",
  "É",
  "ÀÉ mixed Case",
  "àé MIXED cASE",
  "Жук",
  "жУК",
  "ﬁ",
  "ＡＢ",
  "ａｂ",
  "\uE000",
  "\uFFFD",
  "\uFF01",
  "\u{10000}",
  "😀",
  "😀😀",
  "\u{10400}",
  "\u{10428}",
  "ẞß",
  "e\u0301",
  "x".repeat(150),
];

const PLAIN = ["alpha", "Alpha", "beta", "ALPHABET", "waf", "bot", "942100", "942110", "DE", "FR", "US"];
const ADDRESSES = [
  "203.0.113.7",
  "203.0.113.8",
  "203.0.113.200",
  "203.0.113.*",
  "203.0.112.*",
  "203.0.*.*",
  "203.0.113.256",
  "203.0.113.07",
  "203.0.113",
  "203.0.113.7 ",
  "203.0.113.7/24",
  "203.0.1130.7",
  // As rows have them that were stored before these forms were one.
  "203.0.113.7:51234",
  "203.0.113.7, 10.0.0.1",
  "[::ffff:203.0.113.7]:443",
  "[2001:db8::1]:443",
  "2001:db8::1, 203.0.113.7",
  "10.1.2.3",
  "10.255.0.*",
  "0.0.0.0",
  "255.255.255.255",
  "2001:db8::1",
  "2001:DB8:0:0:0:0:0:1",
  "2001:db8:1::9",
  "2001:db8:1:*",
  "2001:db8::*",
  "::",
  "::1",
  "::ffff:203.0.113.7",
  "fe80::1%eth0",
  "1::2::3",
  "*",
];
const NETWORKS = [
  "203.0.113.0/24",
  "203.0.113.7",
  "203.0.113.0/25",
  "203.0.112.0/23",
  "203.0.113.128/25",
  "203.0.0.0/16",
  "0.0.0.0/0",
  "10.0.0.0/8",
  "10.1.2.3/32",
  "10.254.0.0/15",
  "128.0.0.0/1",
  "203.0.113.9/31",
  "::/0",
  "2001:db8::/32",
  "2001:DB8::1",
  "2001:db8:1::/48",
  "2001:db8:1::/64",
  "::/96",
  "::ffff:0:0/96",
];
const ACTIONS = ["block", "log", "challenge", "allow", "Blocked"];

export type Draw = ReturnType<typeof createDraw>;

/** Random choices from one source of fractions. */
export function createDraw(fraction: () => number) {
  const below = (limit: number) => Math.floor(fraction() * limit);
  function one<T>(items: readonly T[]): T {
    const item = items[below(items.length)];
    if (item === undefined) throw new RangeError("nothing to choose from");
    return item;
  }
  const chance = (share: number) => fraction() < share;
  return { below, one, chance };
}

function drawText({ one, chance, below }: Draw, plain: readonly string[]): string | null {
  if (chance(0.08)) return null;
  if (chance(0.08)) return "";
  if (chance(0.55)) return one(plain);
  return Array.from({ length: 1 + below(2) }, () => one(HOSTILE)).join(chance(0.5) ? "" : " ");
}

/** Events with few times and few texts, so that ties and large groups are common. */
export function drawEvents(draw: Draw, count: number, prefix: string): WafEvent[] {
  const times = Array.from({ length: Math.ceil(count / 3) }, () => FIRST_DAY + draw.below(END - FIRST_DAY));
  return Array.from({ length: count }, (_, index) => ({
    occurredAt: draw.one(times),
    logId: `${prefix}${draw.below(36 ** 6).toString(36)}-${index}`,
    route: "search",
    feature: drawText(draw, ["waf", "bot", "rate"]),
    ruleId: drawText(draw, ["942100", "942110", "941100"]),
    ip: draw.chance(0.9) ? draw.one(ADDRESSES) : drawText(draw, PLAIN),
    ja4: drawText(draw, PLAIN),
    ua: drawText(draw, PLAIN),
    url: drawText(draw, PLAIN),
    asn: drawText(draw, ["64500", "64501"]),
    country: drawText(draw, ["DE", "FR"]),
    action: draw.chance(0.9) ? draw.one(ACTIONS) : drawText(draw, ACTIONS),
    message: drawText(draw, ["SQL Injection", "XSS"]),
    ...UNKNOWN_FACTS,
  }));
}

/** A text to look for: whole, in part, in another case, or nowhere to be found. */
function drawNeedle(draw: Draw, events: readonly WafEvent[], field: Dimension | "message"): string {
  const text = draw.chance(0.7) ? (draw.one(events)[field] ?? "") : draw.one(HOSTILE);
  const characters = Array.from(text);
  const from = draw.chance(0.5) ? 0 : draw.below(characters.length + 1);
  const part = characters.slice(from, draw.chance(0.5) ? undefined : from + 1 + draw.below(4)).join("");
  const needle = draw.chance(0.2) ? part.toUpperCase() : part;
  return draw.chance(0.2) ? needle.toLowerCase() : needle;
}

function drawFilter(draw: Draw, events: readonly WafEvent[]) {
  const field = draw.one(DIMENSIONS);
  const op = draw.one(["eq", "in", "contains", "wildcard", "cidr"] as const);
  if (op === "cidr") {
    return { field: "ip", op, value: Array.from({ length: 1 + draw.below(2) }, () => draw.one(NETWORKS)) };
  }
  const value = Array.from({ length: 1 + draw.below(3) }, () => {
    if (op === "eq" || op === "in") return draw.one(events)[field] ?? "";
    const needle = drawNeedle(draw, events, field);
    if (op === "contains" || draw.chance(0.2)) return needle;
    return draw.one([
      `*${needle}*`,
      `${needle}*`,
      `*${needle}`,
      "*",
      `**${needle}`,
      needle.replace(/./su, "*"),
    ]);
  });
  return { field, op, value };
}

/** Dimensions with few values each, which groups are counted by at once. */
const COUNTED = ["feature", "ruleId", "asn", "country", "action"] as const;

/** A question about such dimensions only: of one of them, or of several together. */
export function drawCountedBody(draw: Draw, events: readonly WafEvent[]) {
  const first = draw.below(3);
  const field = draw.one(COUNTED);
  const isAlone = draw.chance(0.4);
  const rest = draw.chance(0.5) ? 0 : draw.below(DAY_MS);
  return {
    from: FIRST_DAY + first * DAY_MS - rest,
    to: FIRST_DAY + (first + 1 + draw.below(4)) * DAY_MS + rest,
    filters: Array.from({ length: draw.below(3) }, () =>
      drawCountedFilter(draw, events, isAlone ? field : draw.one(COUNTED)),
    ),
    groupBy: isAlone ? [field] : Array.from({ length: 1 + draw.below(4) }, () => draw.one(COUNTED)),
    buckets: draw.chance(0.6) ? draw.one([1, 24, 97, 500]) : 0,
    page: draw.chance(0.9) ? 0 : 1,
    pageSize: draw.one([3, 50, 500]),
  };
}

function drawCountedFilter(draw: Draw, events: readonly WafEvent[], field: (typeof COUNTED)[number]) {
  const text = () => draw.one(events)[field] ?? "";
  if (draw.chance(0.6)) return { field, op: "in", value: [text(), text(), "waf", "block"] };
  const needle = drawNeedle(draw, events, field);
  return draw.chance(0.5)
    ? { field, op: "contains", value: [needle] }
    : { field, op: "wildcard", value: [`*${needle}`, "b*"] };
}

/** A request body as a client would send it. */
export function drawBody(draw: Draw, events: readonly WafEvent[]) {
  const edges = [FIRST_DAY, END, FIRST_DAY + DAY_MS, FIRST_DAY + 3 * DAY_MS];
  const moment = () => {
    if (draw.chance(0.4)) return draw.one(edges);
    if (draw.chance(0.3)) return draw.one(events).occurredAt + draw.below(2);
    return FIRST_DAY - DAY_MS + draw.below(END - FIRST_DAY + 2 * DAY_MS);
  };
  const [from, to] = [moment(), moment()].sort((a, b) => a - b) as [number, number];
  const isGrouped = draw.chance(0.6);
  return {
    from,
    to: to === from ? to + 1 + draw.below(1_000) : to,
    query: draw.chance(0.3)
      ? drawNeedle(draw, events, draw.one(["ip", "ruleId", "url", "ua", "message"]))
      : null,
    filters: Array.from({ length: draw.chance(0.4) ? 0 : 1 + draw.below(3) }, () => drawFilter(draw, events)),
    groupBy: isGrouped ? Array.from({ length: 1 + draw.below(3) }, () => draw.one(DIMENSIONS)) : [],
    buckets: isGrouped && draw.chance(0.6) ? draw.one([1, 2, 7, 24, 500]) : 0,
    page: draw.chance(0.7) ? 0 : draw.below(4),
    pageSize: draw.one([1, 3, 10, 50, 500]),
  };
}
