import { expect, test } from "vitest";
import { findSilence, Matchers } from "#alerts/rules/silence.ts";
import { HOUR_MS } from "#lib/units.ts";
import { alertSpike, NOW } from "./support.ts";

const spike = alertSpike({ zoneId: 101, ruleId: "942100", severity: "error" });

function silence(matchers: Matchers, over = {}) {
  return { id: 1, startsAtMs: NOW, expiresAtMs: NOW + HOUR_MS, matchers, ...over };
}

const isSilenced = (matchers: Matchers) => findSilence([silence(matchers)], spike, NOW) !== null;

test.each<[Matchers, boolean]>([
  [{ zone: [101] }, true],
  [{ zone: [102] }, false],
  [{ zone: [102, 101] }, true],
  [{ rule: ["942100"] }, true],
  [{ rule: ["94210"] }, false],
  [{ rule: ["942*"] }, true],
  [{ rule: ["941*"] }, false],
  [{ zone: [101], rule: ["941100"] }, false],
  [{ zone: [101], severity: ["error"], kind: ["spike"] }, true],
  [{ severity: ["warning"] }, false],
  [{ kind: ["new-rule"] }, false],
])("%o silences the spike: %s", (matchers, expected) => {
  expect(isSilenced(matchers)).toBe(expected);
});

test("a silence counts from its start until just before its end", () => {
  const active = [silence({ zone: [101] })];
  expect(findSilence(active, spike, NOW - 1)).toBeNull();
  expect(findSilence(active, spike, NOW)).not.toBeNull();
  expect(findSilence(active, spike, NOW + HOUR_MS)).toBeNull();
});

test("the silence that ends last is named", () => {
  const long = silence({ rule: ["*"] }, { id: 2, expiresAtMs: NOW + 9 * HOUR_MS });
  expect(findSilence([silence({ zone: [101] }), long], spike, NOW)?.id).toBe(2);
});

test("a silence of a zone or rule does not match an alert without one", () => {
  const about = { kind: "self", zoneId: null, ruleId: null, severity: "error" as const };
  expect(findSilence([silence({ zone: [101] }), silence({ rule: ["*"] })], about, NOW)).toBeNull();
  expect(findSilence([silence({ kind: ["self"] })], about, NOW)).not.toBeNull();
});

test.each([{}, { zone: [] }, { zones: [101] }, { zone: ["101"] }, { rule: [""] }, [], null])(
  "matchers %o are refused, so a mistake cannot silence everything",
  (matchers) => {
    expect(Matchers.safeParse(matchers).success).toBe(false);
  },
);
