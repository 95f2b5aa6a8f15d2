import { expect, test } from "vitest";
import { maskAddress } from "#archive/rules/mask.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { toListEvent, toSearchEvent } from "#ingest/rules/read-page.ts";
import { toPlainAddress } from "#model/ip-address.ts";
import { matchesSources } from "#model/subject.ts";
import { matchTombstones } from "#people/rules/erasure-guard.ts";
import { createErasureTarget, singleAddress } from "#people/rules/erasure-target.ts";
import { toPseudonym } from "#people/rules/pseudonym.ts";
import { KEY } from "../people/erasure-world.ts";

/** The forms in which the platform or a proxy may write the address of one person. */
const FORMS = {
  "203.0.113.9": [
    "203.0.113.9:51234",
    "203.0.113.9, 10.0.0.1",
    "203.0.113.9,10.0.0.1",
    "203.0.113.9:51234, 10.0.0.1:80",
    "::ffff:203.0.113.9",
    "::FFFF:cb00:7109",
    "[::ffff:203.0.113.9]:443",
  ],
  "2001:db8::9": ["[2001:db8::9]:443", "[2001:db8::9]", "2001:db8::9, 10.0.0.1"],
};
const CASES = Object.entries(FORMS).flatMap(([plain, forms]) => forms.map((form) => ({ plain, form })));

test.each(CASES)("$form is one person with $plain wherever senders are compared", ({ plain, form }) => {
  expect(toPlainAddress(form)).toBe(plain);
  expect(toSourceAddress(form)).toBe(toSourceAddress(plain));
  expect(toPseudonym(KEY, form)).toBe(toPseudonym(KEY, plain));
  expect(maskAddress(form)).toBe(maskAddress(plain));
  for (const [pattern, value] of [
    [plain, form],
    [form, plain],
  ] as const)
    expect(matchesSources({ ip: [pattern] }, { ip: [value] })).toBe(true);
  const network = singleAddress(form);
  if (network === null) throw new Error(`${form} is no address`);
  const target = createErasureTarget(KEY, network, { includeMasked: false });
  expect([plain, form].map(target.covers)).toEqual([true, true]);
  const { family, prefix, hash } = target;
  const tombstone = { untilAt: 5, family, prefix, hash, maskedHash: null, maskedPrefix: null };
  expect(matchTombstones(KEY, [tombstone])(form)).toBe(5);
});

test.each(CASES)("ingest stores $form as $plain on both routes", ({ plain, form }) => {
  const row = { logId: "a", timestamp: 1, fields: { ip: form }, log: null };
  const entry = { logId: "a", timestamp: 1, log: JSON.stringify({ RemoteIp: form }), labels: {} };
  expect(toSearchEvent(row as never).ip).toBe(plain);
  expect(toListEvent(entry)?.ip).toBe(plain);
});

test.each([
  "203.0.113.*",
  "",
  "erased",
  "10.0.0.1 and 203.0.113.9",
  "unknown, 203.0.113.9",
  "203.0.113.9:http",
  "203.0.113.256:80",
  "2a09:a48a:f5cd:9cf8:c29c:4b72::ea",
])("toPlainAddress leaves %j as it is", (text) => {
  expect(toPlainAddress(text)).toBe(text);
});
