import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";
import { sample } from "#test/support/sample.ts";
import { stringsOf } from "./characters.ts";
import { HOSTILE } from "./hostile.ts";
import {
  CONSOLE,
  changesMessage,
  hostileMessage,
  messageOf,
  messageSaying,
  sourcesMessage,
  VERDICT_ORDER,
  verdictMessage,
} from "./messages.ts";

const REASONS = ["first", "again", "worse", "repeat", "advice", "turned", "settled", "resolved"] as const;
/** The others show what one of these shows, so only the soak fills them with every hostile text. */
const SHOWN = ["first", "advice", "resolved"];
const FILLED = sample(REASONS, (reason) => !SHOWN.includes(reason));
export const ENDED = { state: "resolved", endedAt: Date.UTC(2026, 10, 22, 9, 26) } as const;

function stateOf(reason: AlertMessage["reason"]): Partial<AlertMessage> {
  return isEnding(reason) ? { reason, ...ENDED } : { reason };
}

/** What every vendor's form of an alert promises; `render` gives a request's body as the vendor gets it. */
export function describeFormat(
  kind: string,
  render: (message: AlertMessage) => unknown,
  schema: z.ZodType,
): void {
  const check = (message: AlertMessage): unknown => {
    const body = render(message);
    expect(schema.safeParse(body).error?.issues).toBeUndefined();
    return body;
  };

  test.each<[string, AlertMessage]>([
    ["first", messageOf()],
    ["verdict", verdictMessage()],
    ["new-verdict", verdictMessage({ reason: "turned", transition: 2 })],
    ["advice", messageOf({ reason: "advice" })],
    ["resolved", messageOf({ reason: "resolved", ...ENDED })],
    ["self", messageOf({ kind: "self", zoneId: null, ruleId: null, ruleTitle: null, sparkline: [] })],
    ["sources", sourcesMessage()],
    ["changes", changesMessage()],
    ["hostile", hostileMessage()],
    ["hostile-advice", hostileMessage({ reason: "advice" })],
    ["hostile-resolved", hostileMessage({ reason: "resolved", ...ENDED })],
  ])("%s looks as it looked (F71)", async (name, message) => {
    const json = `${JSON.stringify(check(message), null, 2)}\n`;
    await expect(json).toMatchFileSnapshot(`golden/${name}.golden.json`);
  });

  test("the verdict comes first, in the order of a person's questions", () => {
    const shown = stringsOf(check(verdictMessage())).join("\n");
    const text = shown.replaceAll(/[\\*]|<\/?b>/g, "").replaceAll("&#39;", "'");
    const places = VERDICT_ORDER.map((part) => ({ part, at: text.indexOf(part, text.indexOf("Verdict: ")) }));
    expect(places.filter(({ at }) => at === -1)).toEqual([]);
    expect(places).toEqual(places.toSorted((a, b) => a.at - b.at));
  });

  test("advice names the rule and the zone that it is about, and sources have none", () => {
    const said = (message: AlertMessage) => stringsOf(check(message)).join("\n");
    const text = "block 103.36.170.252";
    const advice = { state: "present", text, reason: null } as const;
    const ofRule = said(messageOf({ advice, ruleId: "2097153", ruleTitle: null }));
    const ofSources = said(sourcesMessage({ advice }));
    expect(ofSources).not.toContain(text);
    expect(ofSources).not.toMatch(/advice/i);
    const named = "About rule 2097153 in all of zone 101";
    expect(ofRule.includes(text) ? ofRule : named).toContain(named);
  });

  describe.each(FILLED)("as %s", (reason) => {
    test.each(Object.entries(HOSTILE))("%s links nothing and hides nothing (F71)", (_name, text) => {
      const shown = stringsOf(check(messageSaying(text, stateOf(reason))))
        .join("\n")
        .replaceAll(CONSOLE, "")
        .replaceAll(/https?:\/\/adaptivecards\.io\/schemas\/\S+/g, "");
      expect(shown).not.toMatch(/:\/\/|www\.|mailto:/i);
      expect(shown.replaceAll("\u2060", "")).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      expect(shown.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    });

    test.each(["x", "💥", "&", "`", "_", "<", "\\", '"', "@a ", "x\n", "\u{e0041}", ":a:"])(
      "any amount of %j stays within the vendor's limits",
      (unit) => {
        const title = unit.repeat(500);
        check(
          messageSaying(unit.repeat(20_000), {
            ...stateOf(reason),
            sparkline: Array.from({ length: 5_000 }, (_, index) => index),
            links: Array.from({ length: 60 }, () => ({ title, url: `https://x.example/${"&".repeat(450)}` })),
          }),
        );
      },
    );

    test("any text fits the vendor's schema", () => {
      fc.assert(
        fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
          check(messageSaying(text, stateOf(reason)));
        }),
        { numRuns: 50 },
      );
    });
  });

  test.each(REASONS.filter((reason) => !isEnding(reason)))(
    "%s has no mark of the recommendation's Markdown",
    (reason) => {
      const text = "## Assessment\n**One** _network_ sends `sqlmap` requests.\n* Keep [the rule](x)";
      const shown = stringsOf(
        render(messageOf({ reason, advice: { state: "present", text, reason: null } })),
      );
      const words = shown.join("\n").replaceAll("> ", "");
      // A sign in brackets may be escaped for the vendor's own Markdown.
      expect(words).toMatch(/\bAssessment\s/);
      expect(words).toContain("One network sends sqlmap requests.");
      expect(words).toMatch(/\n\s*\\?- Keep the rule \\?\(x\\?\)/);
      expect(words).not.toContain("## Assessment");
    },
  );

  test("a command that is shown can be copied into a shell", () => {
    const value = "a@b.example/wp-login.php";
    const howToSilence = `longwatch silences add --zone 101 --ua=${value} --url='/x y.php' --for 2h --reason 'why'`;
    const shown = stringsOf(check(verdictMessage({ howToSilence }))).join("\n");
    for (const command of shown.match(/longwatch (?:silences|exclusion) [^\n]*/g) ?? []) {
      expect(command).not.toContain("\u2060");
      const words = command.replaceAll("&#39;", "'").replaceAll("\\", "");
      const [, ua = ""] = /--ua=(\S+) --url/.exec(words) ?? [];
      expect(["", value]).toContain(ua.replaceAll("'", ""));
    }
  });

  test("times that no calendar reaches break nothing", () => {
    check(messageOf({ startedAt: -9e15 }));
    check(messageOf({ reason: "resolved", state: "resolved", startedAt: 9e15, endedAt: 9e15 }));
  });

  test.each(REASONS.filter((reason) => !isEnding(reason)))("%s marks the advice as the AI's", (reason) => {
    const shown = stringsOf(render(messageOf({ reason }))).join("\n");
    expect(shown).toContain("Advice from the platform's AI (not verified, nothing was applied)");
  });
}
