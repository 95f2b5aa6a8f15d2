import fc from "fast-check";
import type { ZonedEvent } from "#archive/rules/records/to-row.ts";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import { HOSTILE } from "../query/draw.ts";

const piece = fc.oneof(
  fc.string({ unit: "binary", maxLength: 4 }),
  fc.constantFrom(...HOSTILE, "\0", "\ud800", "\u202e", "\u009b", "?", "#", "://"),
);
const hostile = fc.array(piece, { maxLength: 4 }).map((parts) => parts.join(""));
const among = (...words: readonly string[]) => fc.oneof(fc.constantFrom("", ...words), hostile);

const url = fc.oneof(
  hostile,
  fc
    .tuple(
      fc.constantFrom("https://", "HTTP://u@", "//", ""),
      among("Shop.example:8443", "[2001:db8::1]:80"),
      hostile,
    )
    .map(([scheme, host, rest]) => `${scheme}${host}/${rest}`),
  hostile.map((text) => `https://shop.example/${text.repeat(900)}`),
);
const ip = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  among(
    "203.0.113.*",
    "anon-1f2e-3d4c",
    "erased",
    "2001:db8::",
    "::1",
    "::",
    "::ffff:203.0.113.7",
    "1::2::3",
  ),
  fc.constantFrom(
    "203.0.113.256",
    "203.0.113.07",
    "1:2:3:4:5:6:7::",
    "::2:3:4:5:6:7:8",
    "1::8 ",
    "fe80::1%eth0",
  ),
);

const labels = fc.record(
  {
    asn: among("64500"),
    country: among("DE"),
    ruleId: among("942100"),
    severity: among("CRITICAL", "low", "notice"),
    method: among("GET", "POST", "PATCH", "get", "PROPFIND"),
    ruleGroup: among("sqli"),
    status: among("Blocked"),
    serverZone: among("DE"),
    added: fc.jsonValue({ maxDepth: 2 }),
  },
  { requiredKeys: [] },
);
const header = fc.record({ Name: among("CDN-RequestId", "cdn-requestid", "User-Agent"), Value: hostile });
const log = fc.record(
  {
    ServerZoneId: fc.oneof(fc.integer(), fc.constant(null)),
    Message: hostile,
    Url: url,
    RemoteIp: ip,
    UrlEncodedBody: fc.oneof(hostile, fc.constant(null)),
    Headers: fc.oneof(fc.array(header, { maxLength: 4 }), fc.jsonValue({ maxDepth: 1 })),
    TriggerMatch: fc.oneof(fc.record({ Key: hostile, Value: hostile }), fc.jsonValue({ maxDepth: 1 })),
    Added: fc.jsonValue({ maxDepth: 2 }),
  },
  { requiredKeys: [] },
);

/** An entry of the list, a row of a search, or bytes that are no JSON. */
export const anyRecord = fc
  .oneof(
    {
      weight: 8,
      arbitrary: fc
        .tuple(
          log.map((one) => JSON.stringify(one)),
          labels,
        )
        .map(([text, more]) => ({ log: text, labels: more })),
    },
    { weight: 2, arbitrary: log.map((one) => ({ log: one, fields: {} })) },
    { weight: 1, arbitrary: fc.jsonValue() },
  )
  .map((entry) => Buffer.from(JSON.stringify(entry)));

const stored = (text: fc.Arbitrary<string>, most = MAX_DIMENSION_CHARS) =>
  text.map((one) => cleanText(one, most));

/** An event as it is stored, with '' for what is not known. */
export const anyEvent: fc.Arbitrary<ZonedEvent> = fc.record({
  zoneId: fc.integer({ min: 1, max: 2_147_483_647 }),
  logId: stored(hostile.map((text) => `id${text}`)),
  occurredAt: fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
  route: fc.constantFrom("list", "search"),
  message: stored(hostile, MAX_TEXT_CHARS),
  method: stored(fc.oneof(fc.constantFrom("", "GET", "POST", "PURGE", "get"), hostile)),
  requestId: stored(fc.oneof(fc.constantFrom("", "0a1b"), hostile)),
  fields: fc.record({
    feature: stored(among("waf")),
    ruleId: stored(among("942100")),
    ip: stored(ip),
    ja4: stored(among("t13d1516h2_8daaf6152771_b186095e22b6")),
    ua: stored(hostile, MAX_TEXT_CHARS),
    url: stored(url, MAX_TEXT_CHARS),
    asn: stored(among("64500", "4294967295", "0", "064500", "AS64500", "99999999999")),
    country: stored(among("DE")),
    action: stored(
      fc.oneof(
        fc.constantFrom(
          "",
          "block",
          "Blocked",
          "challenge",
          "log",
          "allow",
          "bypass",
          "bloc\u212a",
          "Tar-Pit",
          "IT'S",
          "Rate_Limited",
          "429",
          "Monitored",
        ),
        hostile,
      ),
    ),
  }),
});
