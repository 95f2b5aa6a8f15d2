import { expect, test } from "vitest";
import { describeUnsent } from "#model/words.ts";

const NOTHING = { silencedBy: null, mutedBy: null, held: [], waiting: [] } as const;

test.each([
  ["nothing", {}, []],
  ["a silence", { silencedBy: 7 }, ["silenced by #7"]],
  ["an inhibition", { mutedBy: "inhibition" }, ["not sent: another alert inhibits it"]],
  ["an incident", { mutedBy: "incident" }, ["not sent: part of another alert, which notifies"]],
  ["few addresses", { mutedBy: "few-addresses" }, ["only listed: few addresses send most of its events"]],
  [
    "a zone's first day",
    { mutedBy: "first-day" },
    ["only listed: its zone is in its first day, and its requests neither attack nor are stopped in numbers"],
  ],
  ["quiet hours", { held: ["chat", "mail"] }, ["after quiet hours to chat, mail"]],
  ["the group interval", { waiting: ["pager"] }, ["after group_interval to pager"]],
  [
    "all that can come together",
    { silencedBy: 7, mutedBy: "incident", held: ["chat"], waiting: ["pager"] },
    [
      "silenced by #7",
      "not sent: part of another alert, which notifies",
      "after quiet hours to chat",
      "after group_interval to pager",
    ],
  ],
] as const)("a transition that is held back by %s says so", (_what, over, said) => {
  expect(describeUnsent({ ...NOTHING, ...over })).toEqual(said);
});
