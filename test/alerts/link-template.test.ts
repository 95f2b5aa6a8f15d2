import fc from "fast-check";
import { expect, test } from "vitest";
import {
  fillTemplate,
  findTemplateMistake,
  type LinkValues,
  MAX_TEMPLATE_CHARS,
} from "#alerts/rules/message/links.ts";
import { MAX_URL_CHARS } from "#model/alert-message.ts";
import { HOSTILE } from "../delivery/support/hostile.ts";

const VALUES: LinkValues = {
  zone: "101",
  rule: "942100",
  alert: "7",
  from: "2026-11-21T13:03:00.000Z",
  to: "2026-11-21T14:03:00.000Z",
  from_ms: "1795266180000",
  to_ms: "1795269780000",
  from_s: "1795266180",
  to_s: "1795269780",
};
const withRule = (rule: string | null): LinkValues => ({ ...VALUES, rule });

test.each([
  "https://wiki.example/runbooks/sqli",
  "https://wiki.example",
  "http://10.0.0.7:3000/d/waf?var-zone={zone}&var-rule={rule}&from={from_ms}&to={to_ms}",
  "https://kibana.example/app/discover#/?_g=(time:(from:'{from}',to:'{to}'))",
  "https://splunk.example/en-US/app/search?earliest={from_s}&latest={to_s}&q=rule%3D{rule}",
  "https://wiki.example/{zone}/{rule}/{alert}#{rule}",
  "https://[2001:db8::1]/x?at=me@here",
  `https://wiki.example/${"x".repeat(MAX_TEMPLATE_CHARS - 21)}`,
])("%s is a template", (url) => {
  expect(findTemplateMistake(url)).toBeNull();
});

const HOST = "must name a host, without a user and without a placeholder in the host";
test.each([
  ["javascript:alert({zone})", "must begin with https:// or http://"],
  ["data:text/html,{rule}", "must begin with https:// or http://"],
  ["{rule}", "must begin with https:// or http://"],
  ["{rule}://wiki.example/", "must begin with https:// or http://"],
  ["//wiki.example/", "must begin with https:// or http://"],
  ["https://{rule}/", HOST],
  ["https://{rule}.example/", HOST],
  ["https://wiki.example{rule}/", HOST],
  ["https://wiki.example:{zone}/", HOST],
  ["https://{rule}@wiki.example/", HOST],
  ["https://user:password@wiki.example/", HOST],
  ["https:///{zone}", HOST],
  ["https://wiki.example\\{rule}", "must not contain spaces, control characters or backslashes"],
  ["https://wiki.exa\tmple/", "must not contain spaces, control characters or backslashes"],
  ["https://wiki.example/a b", "must not contain spaces, control characters or backslashes"],
  ["https://wiki.example/\u202e", "must not contain spaces, control characters or backslashes"],
  ["https://wiki.example/{ip}", "must not contain {ip}; the placeholders are {zone} {rule} {alert}"],
  ["https://wiki.example/{ZONE}", "must not contain {ZONE}; the placeholders are"],
  ["https://wiki.example/{}", "must not contain {}; the placeholders are"],
  ["https://wiki.example/{__proto__}", "must not contain {__proto__}; the placeholders are"],
  [
    "https://wiki.example/{zone",
    "must close every brace; write %7B and %7D for braces that are part of the URL",
  ],
  ["https://wiki.example/{{zone}}", "must close every brace"],
  ["https://wiki.example/a/../b", "must not contain /./ or /../ in its path"],
  ["https://wiki.example/%2E%2e/{zone}", "must not contain /./ or /../ in its path"],
  ["https://wiki.example:99999/", "must be a complete URL with a valid host and port"],
  [`https://wiki.example/${"x".repeat(MAX_TEMPLATE_CHARS - 20)}`, "must be at most 400 characters"],
])("%j is refused: %s", (url, mistake) => {
  expect(findTemplateMistake(url)).toContain(mistake);
});

test("every place is filled in, percent-encoded", () => {
  expect(
    fillTemplate("https://w.example/{zone}/{rule}?a={alert}&f={from}&t={to_ms}", withRule("a b/c?d")),
  ).toBe("https://w.example/101/a%20b%2Fc%3Fd?a=7&f=2026-11-21T13%3A03%3A00.000Z&t=1795269780000");
  expect(fillTemplate("https://w.example/#{rule}", withRule("(x)!'*~"))).toBe(
    "https://w.example/#%28x%29%21%27%2A%7E",
  );
});

test.each([null, ""])(
  "a link with the value %j for a place is left out, also if other places have values",
  (rule) => {
    expect(fillTemplate("https://w.example/{zone}?rule={rule}", withRule(rule))).toBeNull();
    expect(fillTemplate("https://w.example/{zone}", withRule(rule))).toBe("https://w.example/101");
  },
);

test.each([
  ["https://w.example/runbooks/{rule}/edit", ".."],
  ["https://w.example/runbooks/{rule}/edit", "."],
  ["https://w.example/runbooks/{rule}", ".."],
  ["https://w.example/runbooks/.{rule}", "."],
  ["https://w.example/{rule}{rule}/x", "."],
])("%s filled with %j would be another page, so it is left out", (url, rule) => {
  expect(fillTemplate(url, withRule(rule))).toBeNull();
});

test("a link that gets too long is left out, and a link with one character less is not", () => {
  const room = MAX_URL_CHARS - "https://w.example/".length;
  expect(fillTemplate("https://w.example/{rule}", withRule("x".repeat(room)))).toHaveLength(MAX_URL_CHARS);
  expect(fillTemplate("https://w.example/{rule}", withRule("x".repeat(room + 1)))).toBeNull();
});

const TEMPLATE = "https://w.example:8443/a/{rule}/b?q={rule}&z={zone}#{rule}";

function expectToStay(rule: string): void {
  // Nothing, dots alone, or too much.
  const isOut = rule === "" || /^\.{1,2}$/.test(rule) || encodeURIComponent(rule.toWellFormed()).length > 100;
  const filled = fillTemplate(TEMPLATE, withRule(rule)) ?? (isOut ? null : "left out");
  if (filled === null) return;
  const { origin, pathname, searchParams, hash, username, password } = new URL(filled);
  expect([origin, username, password]).toEqual(["https://w.example:8443", "", ""]);
  expect(pathname.split("/").map(decodeURIComponent)).toEqual(["", "a", rule.toWellFormed(), "b"]);
  expect([...searchParams]).toEqual([
    ["q", rule.toWellFormed()],
    ["z", "101"],
  ]);
  expect(decodeURIComponent(hash)).toBe(`#${rule.toWellFormed()}`);
  expect(filled).toMatch(/^[\x21-\x7e]+$/);
  expect(filled).not.toMatch(/[<>"'`|\\()*~!]/);
}

test.each(Object.entries(HOSTILE))(
  "hostile %s stays the one piece of the address that it is (F71)",
  (_name, text) => {
    expectToStay(text);
    expectToStay(text.slice(0, 40));
  },
);

test("whatever a rule is called, the address leads to the operator's own page (F71)", () => {
  const anything = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.string({
      unit: fc.constantFrom(".", "/", "\\", "%", "2", "e", "@", ":", "#", "?", "&", "\ud800"),
      maxLength: 8,
    }),
  );
  fc.assert(fc.property(anything, expectToStay), { numRuns: 500 });
});
