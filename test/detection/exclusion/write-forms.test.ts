import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { describeClause, toWrittenPath, writeForms } from "#detection/rules/exclusion/write-forms.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import type { ExclusionClause } from "#model/advice.ts";

const CLAUSE = { ruleIds: ["942440"], template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" };
const ORIGINS = ["https://shop.example.test", "http://shop.example.test:8080"];
const formsOf = (clause: Partial<ExclusionClause>, origins = ORIGINS) =>
  writeForms(101, { ...CLAUSE, ...clause }, origins);
const find = (clause: Partial<ExclusionClause>, tool: string, reach: string, origins = ORIGINS) =>
  formsOf(clause, origins).find((form) => form.tool === tool && form.reach === reach)?.text ?? "";

const HOSTILE = [
  "'; touch /tmp/x; '",
  "$(touch /tmp/x)",
  "`touch /tmp/x`",
  "${var.secret}",
  "%{ if true }",
  'quote " and \\ backslash \\',
  "line\nline\r\n\u2028",
  "\u202eltr\u0000\u0007",
  "🙂ü\ud800",
];

test("the text names the clause and says that the platform's own forms are wider", () => {
  const text = find({}, "text", "clause");
  expect(text).toMatch(
    /^Exclude rule 942440 for ARGS:title of POST \/reviews\/\{n\}\. The platform has no exception /,
  );
});

test("a rule's form is for the whole zone, and a path's form for every rule", () => {
  expect(find({}, "curl", "rule")).toContain("/shield/waf/rules/review-triggered/101");
  expect(find({}, "terraform", "rule")).toContain('rules_logonly = ["942440"]');
  const path = find({}, "terraform", "path");
  expect(path).toContain(
    'patterns = ["https://shop.example.test/reviews/*", "http://shop.example.test:8080/reviews/*"]',
  );
  expect(path).toContain(
    "# Switches every rule off for these URLs, whatever their query. A * also matches slashes",
  );
  expect(path).toContain('patterns = ["POST"]');
  expect(path).toContain('type = "DisableWAF"');
});

test.each([null, "/", "//", "//{n}", "//{slug}/{...}", "/a*b", "/a/*", `/${"a".repeat(63)}…`, "/a/…"])(
  "the template %j has no form for a path",
  (template) => {
    expect(formsOf({ template }).map(({ reach }) => reach)).toEqual(["clause", "rule", "rule"]);
  },
);

test("a path is not written for hosts that were not seen", () => {
  expect(formsOf({}, []).map(({ reach }) => reach)).toEqual(["clause", "rule", "rule"]);
});

test.each([
  ["/{a}", "/{a}"],
  ["/{n}", "/{n}"],
  ["/{...}", "/{...}"],
  ["/{n}/{n}", "/{n}/*"],
  ["/a/{b}", "/a/{b}"],
  ["/a/{n}x/{uuid}/{...}", "/a/{n}x/*/*"],
])(
  "of the template %j only whole placeholders behind the first segment become a star",
  (template, written) => {
    expect(find({ template }, "terraform", "path")).toContain(`"https://shop.example.test${written}"`);
  },
);

test("whatever a visitor writes into a path, its form names the host and a fixed segment", () => {
  const segment = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 8 }),
    fc.constantFrom("", "{n}", "{a}", "{...}", "{slug}", "…", "*", "**", "?", "12", "a1b2c3d4e5"),
  );
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 10 }), (segments) => {
      const path = toWrittenPath(templateOf(`https://h/${segments.join("/")}`));
      if (path === null) return;
      const fixed = path.split("/").filter((one) => one !== "" && one !== "*");
      expect(fixed.length).toBeGreaterThan(0);
      expect(fixed.join("")).not.toContain("*");
    }),
  );
});

test.each(HOSTILE)("a shell reads the rule %j from the request as one word of JSON", (ruleId) => {
  const command = find({ ruleIds: [ruleId] }, "curl", "rule")
    .split("\n")
    .slice(1)
    .join("\n");
  expect(command).toMatch(/^[\x20-\x7e]*$/);
  const script = `curl() { printf '%s\\n' "$#"; for last; do :; done; printf '%s' "$last"; }\n${command}`;
  const out = execFileSync("sh", ["-c", script], {
    encoding: "utf8",
    env: { EDGE_API_URL: "u", EDGE_API_KEY: "k" },
  });
  const [words, json = ""] = out.split("\n");
  expect(words).toBe("9");
  expect(JSON.parse(json)).toEqual({ ruleId, action: 1 });
});

/** Reads a string of HCL as Terraform does; fails where it would evaluate something. */
function readHcl(text: string): string {
  const [, inner] = /^"((?:[^"\\]|\\.)*)"$/.exec(text) ?? [];
  if (inner === undefined || /[$%]\{/.test(inner)) throw new Error(`no plain string: ${text}`);
  return inner.replaceAll(/\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))/g, (_, short: string, long: string) =>
    String.fromCodePoint(Number.parseInt(short ?? long, 16)),
  );
}

test.each(HOSTILE)("Terraform reads the text %j as it is", (text) => {
  const rule = find({ ruleIds: [text] }, "terraform", "rule");
  expect(rule).toMatch(/^[\x20-\x7e\n]*$/);
  expect(readHcl(/rules_logonly = \[(.*)\]\n/.exec(rule)?.[1] ?? "")).toBe(text.toWellFormed());
  const path = find({ template: `/${text}` }, "terraform", "path", ORIGINS.slice(0, 1));
  expect(path.split("\n")).toHaveLength(11);
  const [, pattern = ""] = /type = "Url".*patterns = \[(".*")\], parameter1/.exec(path) ?? [];
  expect(readHcl(pattern)).toBe(`https://shop.example.test/${text.toWellFormed()}`);
});

test("hostile texts of a clause are one harmless line", () => {
  const said = describeClause({ ...CLAUSE, template: "/a\n\u001b[31m", parameter: "ARGS:\u202e" });
  expect(said).toBe("rule 942440 for ARGS:\\u{202e} of POST /a \\u{1b}[31m");
});
