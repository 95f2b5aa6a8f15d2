import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DeliveryError, describeFailure } from "#delivery/receivers/delivery-error.ts";
import { outlineVerdict } from "#delivery/rules/message/describe-verdict.ts";
import { toSafeLinks } from "#delivery/rules/message/document.ts";
import { cutToWidth, drawSparkline, measureWidth, wrapText } from "#delivery/rules/message/text-width.ts";
import { formatDuration, formatNumber } from "#lib/format.ts";
import { cutText, toLine, toLines } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { alertMessage } from "#model/alert-message.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { messageOf } from "../support/messages.ts";
import { CANARY } from "../support/receiver.ts";

test("a message survives the outbox's JSON unchanged", () => {
  const message = messageOf();
  expect(alertMessage.parse(JSON.parse(JSON.stringify(message)))).toEqual(message);
});

test("a verdict says how many attackers came after it was judged", () => {
  const judgedAt = Date.UTC(2026, 10, 20, 12, 5);
  const verdict = { ...verdictOf({ look: "five-minutes", judgedAt }) };
  const attacker = (minutes: number, over: object = {}) => ({
    kind: "rules_per_ip" as const,
    key: `198.51.100.${minutes}`,
    role: "joined" as const,
    startedAt: judgedAt + minutes * MINUTE_MS,
    lastSeenAt: judgedAt,
    isActive: true,
    finding: "",
    traits: {},
    ...over,
  });
  const labelOf = (...attackers: ReturnType<typeof attacker>[]) =>
    outlineVerdict(messageOf({ verdict, attackers }), 200)[0]?.label;
  expect(labelOf(attacker(-4), attacker(1))).toBe("Verdict after 5 minutes");
  expect(labelOf(attacker(-4), attacker(2), attacker(9), attacker(3, { role: "facet" }))).toBe(
    "Verdict after 5 minutes, before 2 of the 3 attackers came",
  );
  expect(labelOf(attacker(-4), attacker(2, { isActive: false }))).toBe("Verdict after 5 minutes");
});

describe("text", () => {
  test.each(["x", "💥"])("of %s as many code points as allowed stay, one more is cut", (unit) => {
    expect(cutText(unit.repeat(10), 10)).toBe(unit.repeat(10));
    expect(cutText(unit.repeat(11), 10)).toBe(`${unit.repeat(9)}…`);
  });

  test("any text becomes one line without an active character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 60 }), (text, maxChars) => {
        const line = toLine(text, maxChars);
        expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}\p{DI}]|\p{M}{3}|:\/\//u);
        expect(Array.from(line).length).toBeLessThanOrEqual(maxChars);
      }),
    );
  });

  test("prose keeps its lines and says when there were more", () => {
    const limits = { maxLines: 3, maxChars: 100 };
    expect(toLines("a\r\n\n b \u2028c", limits)).toEqual(["a", "b", "c"]);
    expect(toLines("a\nb\nc\nd", limits)).toEqual(["a", "b", "c …"]);
    expect(toLines(" \n\t\n", limits)).toEqual([]);
  });

  test("a megabyte of whitespace costs no more than its beginning", () => {
    expect(toLine(`${" ".repeat(1_000_000)}x`, 10)).toBe("");
  });
});

describe("width", () => {
  test("wide characters take two columns, marks none", () => {
    expect(measureWidth("ab")).toBe(2);
    expect(measureWidth("攻撃")).toBe(4);
    expect(measureWidth("💥")).toBe(2);
    expect(measureWidth("e\u0301")).toBe(1);
    expect(cutToWidth("攻撃攻撃", 5)).toBe("攻撃…");
    expect(cutToWidth("攻撃攻撃", 8)).toBe("攻撃攻撃");
  });

  test("wrapping loses no letter and makes no line too wide", () => {
    const texts = fc.string({ unit: fc.constantFrom("a", "攻", " ", "💥", "-") });
    fc.assert(
      fc.property(texts, fc.integer({ min: 2, max: 30 }), (text, columns) => {
        const lines = wrapText(text, columns);
        expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
        for (const line of lines) expect(measureWidth(line)).toBeLessThanOrEqual(columns);
      }),
    );
  });
});

describe("numbers", () => {
  test.each([
    [0, "0"],
    [3.44, "3.4"],
    [12.4, "12"],
    [1_204, "1,204"],
    [12_345_678, "12.3M"],
    [1.7e308, "1.7e+308"],
  ])("%d is shown as %s", (value, shown) => {
    expect(formatNumber(value)).toBe(shown);
  });

  test.each([
    [45_000, "45 s"],
    [-1, "0 s"],
    [23 * 60_000, "23 min"],
    [125 * 60_000, "2 h 5 min"],
    [120 * 60_000, "2 h"],
    [76 * 3_600_000, "3 d 4 h"],
    [48 * 3_600_000, "2 d"],
  ])("%d ms are %s", (durationMs, shown) => {
    expect(formatDuration(durationMs)).toBe(shown);
  });
});

test("a sparkline shows a spike of one bucket among thousands, at its newest end if it is there", () => {
  const counts = Array.from({ length: 5_000 }, (_, index) => (index === 4_999 ? 100 : 1));
  const line = drawSparkline(counts, 40);
  expect(Array.from(line)).toHaveLength(40);
  expect(line).toMatch(/^▁+█$/);
  expect(drawSparkline([0, 0, 0], 40)).toBe("▁▁▁");
  expect(drawSparkline([], 40)).toBe("");
});

test("only plain web addresses are links, without a character that ends one", () => {
  const links = [
    "https://x.example/a|b",
    "http://x.example/?q=<script>",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://user@x.example/",
    "nonsense",
    `https://x.example/${"a".repeat(500)}`,
  ].map((url) => ({ title: "l", url }));
  expect(toSafeLinks(links).map(({ href }) => href)).toEqual(
    ["https://x.example/a%7Cb", "http://x.example/?q=%3Cscript%3E"].slice(0, 2),
  );
});

test("only the name of a foreign error is quoted (F70)", () => {
  const described = describeFailure(new TypeError(`fetch https://x/${CANARY} failed`));
  expect(described).toEqual({
    code: "UNEXPECTED",
    disposition: "retry",
    waitMs: undefined,
    text: "TypeError",
  });
  const ours = new DeliveryError({
    code: "ENDPOINT_BUSY",
    disposition: "wait",
    text: "a\u001b[31m",
    waitMs: 5,
  });
  expect(describeFailure(ours)).toMatchObject({
    code: "ENDPOINT_BUSY",
    disposition: "wait",
    waitMs: 5,
    text: "a\\u{1b}[31m",
  });
});
