import { parse } from "@cdktf/hcl2json";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isObject } from "#lib/json.ts";
import { REVIEW_PLANS, RULE_MODES } from "#model/kinds.ts";
import { writeReview } from "#model/review-forms.ts";

/** Texts that would end a string, a comment or a block of HCL, or begin a template in it. */
const HOSTILE = [
  '"',
  "\\",
  "\n",
  "\r\n",
  "\u2028",
  "\u0085",
  "\u0000",
  "\u{1F4A9}",
  "\ud800",
  "$",
  "%",
  "{",
  "}",
  "*/",
  "/*",
  "${file(var.x)}",
  "%{ if true }",
  "$${x}",
  "#",
  "//",
  "<<EOT\n",
  "EOT",
  '"] }\nresource "a" "b" {}',
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: "grapheme", maxLength: 6 })), {
    maxLength: 5,
  })
  .map((parts) => parts.join(""));
const rule = fc.record({
  rule: text,
  now: fc.constantFrom(...RULE_MODES),
  plan: fc.constantFrom(...REVIEW_PLANS),
  blocks: fc.boolean(),
  path: text,
});

test("a real parser of HCL finds the rules that log in the Terraform text of any plan, and nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(rule, { maxLength: 6, selector: (one) => one.rule }), async (drawn) => {
      const figures = { visitorsMedian: 0, visitorsWorst: 0, attacksThrough: 0 };
      const rules = drawn.map((one) => ({ ...one, ...figures }));
      const blocking = drawn.filter(({ blocks }) => blocks);
      const block = blocking.map((one) => one.rule);
      const exclusions = blocking.map((one) => ({ rule: one.rule, path: `/${one.path}` }));
      const written = writeReview("terraform", { zone: 101, block, exclusions, rules });
      const logged = drawn
        .filter(({ blocks }) => !blocks)
        .map((one) => one.rule.toWellFormed().normalize("NFC"));
      const waf = [{ enabled: true, rules_logonly: logged, rules_disabled: [] }];
      const parsed: unknown = await parse("waf.tf", written);
      expect(unescape(parsed)).toEqual({ resource: { bunnynet_pullzone_shield: { zone_101: [{ waf }] } } });
    }),
  );
}, 60_000);

/** The parser normalises strings, as HCL demands. Its JSON is Terraform's, in which `$${` is the text `${`. */
function unescape(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(/([$%])\1\{/g, "$1{");
  if (Array.isArray(value)) return value.map(unescape);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, unescape(one)]));
}
