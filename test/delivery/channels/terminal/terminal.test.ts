import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import { terminal } from "#delivery/receivers/channels/terminal/terminal.ts";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { measureWidth } from "#delivery/rules/message/text-width.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { HOSTILE } from "../../support/hostile.ts";
import {
  CONSOLE,
  changesMessage,
  hostileMessage,
  messageOf,
  messageSaying,
  sourcesMessage,
} from "../../support/messages.ts";
import { sendOptions } from "../../support/receiver.ts";

const ESC = "\u001b";
// biome-ignore lint: what this service itself writes to a TTY, and nothing more
const STYLE = new RegExp(`${ESC}\\[[\\d;]+m`, "g");

async function print(
  message: AlertMessage,
  tty: { columns?: number; hasColors?: () => boolean } | null = null,
): Promise<string> {
  let printed = "";
  const stream = {
    ...(tty === null ? {} : { isTTY: true, ...tty }),
    write(text: string, done: () => void) {
      printed += text;
      done();
      return true;
    },
  };
  await terminal.open({ name: "terminal", terminal: stream }).send(message, sendOptions());
  return printed;
}

test("a terminal shows the console's address on its own machine while that is the only one", async () => {
  let printed = "";
  const stream = { write: (text: string, done: () => void) => ((printed += text), done(), true) };
  let localUrl: string | null = null;
  const opened = terminal.open({ name: "terminal", terminal: stream, localUrl: () => localUrl });
  await opened.send(messageOf({ alertId: 17, links: [] }), sendOptions());
  expect(printed).not.toContain("Open in Longwatch");
  localUrl = "http://127.0.0.1:8080";
  await opened.send(messageOf({ alertId: 17, links: [] }), sendOptions());
  expect(printed).toContain("Open in Longwatch: http://127.0.0.1:8080/alerts/17\n");
});

test("a terminal that wants no colours gets none, at its own width", async () => {
  const message = messageOf({ links: [] });
  const plain = await print(message, { columns: 60, hasColors: () => false });
  expect(plain).not.toContain("\u001b");
  expect(await print(message, { columns: 60, hasColors: () => true })).toContain("\u001b[");
  expect(Math.max(...plain.split("\n").map((line) => line.length))).toBeLessThanOrEqual(60);
});

describe("golden", () => {
  const ended = { state: "resolved", endedAt: Date.UTC(2026, 10, 21, 14, 26) } as const;
  test.each<[string, AlertMessage, { columns?: number } | null]>([
    ["first", messageOf(), null],
    ["first-colour", messageOf(), { columns: 100 }],
    ["first-narrow", messageOf(), { columns: 60 }],
    ["pending", messageOf({ advice: { state: "pending", text: null, reason: null } }), null],
    [
      "worse",
      messageOf({
        reason: "worse",
        transition: 2,
        advice: { state: "unavailable", text: null, reason: "the plan does not include it" },
      }),
      null,
    ],
    [
      "new-rule",
      messageOf({
        kind: "new-rule",
        severity: "warning",
        usual: 0,
        times: null,
        headline: "Rule 942100 fired for the first time in zone 101",
      }),
      null,
    ],
    [
      "self",
      messageOf({
        kind: "self",
        severity: "error",
        zoneId: null,
        ruleId: null,
        ruleTitle: null,
        headline: "No successful poll of zone 101 for 20 minutes",
        top: { ips: [], asns: [], countries: [], paths: [], userAgents: [], ja4s: [] },
        sparkline: [],
        howToSilence: null,
      }),
      null,
    ],
    ["sources", sourcesMessage(), null],
    ["changes", changesMessage(), null],
    ["changes-resolved", changesMessage({ reason: "resolved", transition: 2, ...ended }), null],
    ["advice", messageOf({ reason: "advice", transition: 2 }), null],
    ["resolved", messageOf({ reason: "resolved", transition: 3, ...ended }), null],
    ["hostile", hostileMessage(), null],
    ["hostile-advice", hostileMessage({ reason: "advice" }), null],
    ["hostile-resolved", hostileMessage({ reason: "resolved", ...ended }), { columns: 80 }],
  ])("%s looks as it looked (F71)", async (name, message, tty) => {
    await expect(await print(message, tty)).toMatchFileSnapshot(`golden/${name}.golden.txt`);
  });
});

test("colour is for terminals only", async () => {
  expect(await print(messageOf())).not.toContain(ESC);
  expect(await print(messageOf(), {})).toContain(`${ESC}[97;41m`);
});

test("without a command to silence the alert, no line mentions silencing", async () => {
  expect(await print(messageOf())).toContain("\nSilence:\nlongwatch silences add");
  expect(await print(messageOf({ howToSilence: null }))).not.toContain("Silence");
});

test("the command is one line outside the frame, at every width, called as it is called where it is read", async () => {
  const command = "silences add --zone 101 --rule=942100 --for 2h --reason 'why'";
  const printed = (howToSilence: string, more = {}) =>
    renderTerminal(messageOf({ howToSilence }), { columns: 40, paint: paintPlain, ...more });
  expect(printed(`longwatch ${command}`)).toMatch(
    /╰─+\nAcknowledge:\nlongwatch alerts ack 7\nSilence:\nlongwatch silences add .* 'why'\n$/,
  );
  const here = { command: "npm run -s longwatch --" };
  expect(printed(`longwatch ${command}`, here)).toContain("\nnpm run -s longwatch -- alerts ack 7\n");
  expect(printed(`longwatch ${command}`, here)).toContain(`\nnpm run -s longwatch -- ${command}\n`);
});

test.each(["first", "worse", "repeat", "advice", "resolved"] as const)(
  "%s says since when, in UTC and by name",
  async (reason) => {
    expect(await print(messageOf({ reason }))).toContain("2026-11-21 14:03 UTC");
  },
);

test("a resolve says when it ended, with the day where it is another", async () => {
  const resolved = (endedAt: number) => print(messageOf({ reason: "resolved", endedAt }));
  expect(await resolved(Date.UTC(2026, 10, 21, 14, 26))).toContain("to 14:26 UTC");
  expect(await resolved(Date.UTC(2026, 10, 22, 0, 5))).toContain("to 2026-11-22 00:05 UTC");
});

test("a resolve is two lines, advice says nothing but the rule and the recommendation", async () => {
  const resolved = await print(messageOf({ reason: "resolved", state: "resolved", endedAt: null }));
  expect(resolved.trimEnd().split("\n")).toHaveLength(2);
  const advice = await print(messageOf({ reason: "advice" }));
  expect(advice).toContain("rule 942100");
  expect(advice).toContain("Block AS64500");
  expect(advice).not.toContain("203.0.113.7");
});

/** Cursor moves, colours, reordering and blanks; the newline is this channel's own. */
const DANGEROUS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{DI}]/u;

function expectTame(printed: string, columns: number): void {
  const plain = printed.replace(STYLE, "");
  const lines = plain.split("\n");
  const silenceAt = lines.lastIndexOf("Silence:");
  for (const [index, line] of lines.entries()) {
    expect(line).not.toMatch(DANGEROUS);
    // The command below the frame is one line, to be copied whole.
    if (silenceAt !== -1 && index === silenceAt + 1) continue;
    // A link is the one thing that is never cut.
    expect(measureWidth(line.replace(CONSOLE, ""))).toBeLessThanOrEqual(columns);
  }
}

describe.each(["first", "advice", "resolved"] as const)("as %s", (reason) => {
  test.each(Object.entries(HOSTILE))(
    "%s cannot move, colour, hide or widen anything (F71)",
    async (_name, text) => {
      const printed = await print(messageSaying(text, { reason }), { columns: 80 });
      expectTame(printed, 80);
      expect(printed.replace(STYLE, "")).toBe(
        renderTerminal(messageSaying(text, { reason }), { columns: 80, paint: paintPlain }),
      );
      expect(printed.replaceAll(CONSOLE, "")).not.toContain("://");
    },
  );

  test("any text at any width stays in its lines", async () => {
    const texts = fc.string({ unit: "binary", maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 40, max: 140 }), async (text, columns) => {
        const links = { links: [] };
        expectTame(
          await print(messageSaying(text, { reason, ...links }), { columns }),
          Math.min(columns, 100),
        );
      }),
      { numRuns: 150 },
    );
  });
});
