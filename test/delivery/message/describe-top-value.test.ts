import { expect, test } from "vitest";
import { toDiscordMessage } from "#delivery/receivers/channels/discord/discord.ts";
import { toSlackMessage } from "#delivery/receivers/channels/slack/slack.ts";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { describeTopValue } from "#delivery/rules/message/document.ts";
import { messageOf } from "../support/messages.ts";

const BROWSER = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/";
const browsers = [`${BROWSER}130.0.0.0 Safari/537.36`, `${BROWSER}128.0.0.0 Safari/537.36`];

test.each<[string, (message: ReturnType<typeof messageOf>) => unknown]>([
  ["terminal", (message) => renderTerminal(message, { columns: 100, paint: paintPlain })],
  ["discord", toDiscordMessage],
  ["slack", toSlackMessage],
])("%s distinguishes browsers whose names differ only at the end", (_kind, render) => {
  const userAgents = browsers.map((value) => ({ value, count: 40, share: 0.5 }));
  const { top } = messageOf();
  const shown = JSON.stringify(render(messageOf({ top: { ...top, userAgents } })));
  expect(shown).toMatch(/Chrome\/130\./);
  expect(shown).toMatch(/Chrome\/128\./);
});

test("a network's number is shown as AS number, and a name unchanged", () => {
  expect(describeTopValue("asns", "3320", 40)).toBe("AS3320");
  expect(describeTopValue("asns", "AS64500 Example Hosting", 40)).toBe("AS64500 Example Hosting");
  expect(describeTopValue("paths", "3320", 40)).toBe("3320");
});

test("requests without a user agent are described as such", () => {
  expect(describeTopValue("userAgents", "", 40)).toBe("(none sent)");
  expect(describeTopValue("paths", "", 40)).toBe("-");
});

test.each([1, 2, 23, 24, 25, 60])(
  "no value is longer than %d code points, and no character is halved",
  (most) => {
    for (const unit of ["x", "💥"]) {
      for (const key of ["userAgents", "paths", "asns"] as const) {
        const shown = describeTopValue(key, unit.repeat(61), most);
        expect(Array.from(shown).length).toBe(most);
        expect(shown.isWellFormed()).toBe(true);
      }
    }
  },
);
