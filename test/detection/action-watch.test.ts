import { expect, test } from "vitest";
import { createActionWatch } from "#detection/rules/action-watch.ts";
import type { ActionClass } from "#model/kinds.ts";

const START = 480_000 * 60;
const LETTERS: Readonly<Record<string, ActionClass>> = {
  b: "blocked",
  l: "logged",
  c: "challenged",
  o: "other",
};

/** `30l` is thirty logged events, one in three minutes; then `| ` two hours pass. Addresses take turns. */
function watch(text: string, addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) {
  const { take } = createActionWatch();
  let minute = START;
  let number = 0;
  const flips: string[] = [];
  for (const part of text.split(" ")) {
    const [, count = "1", letter = ""] = /^(\d*)(\w|\|)$/.exec(part) ?? [];
    for (let i = 0; i < Number(count || 1); i += 1) {
      minute += letter === "|" ? 120 : 3;
      const action = LETTERS[letter];
      if (action === undefined) continue;
      number += 1;
      const address = addresses[number % addresses.length] ?? "";
      const flip = take("942100", action, address, minute);
      if (flip === null) continue;
      const { blocks, challenges, events, of, addresses: senders, usualEvents, before } = flip;
      const word = challenges ? "challenges" : blocks ? "blocks" : "logs";
      flips.push(`${word} ${events}/${of} of ${senders}, before ${usualEvents}/${before}`);
    }
  }
  return flips;
}

test.each([
  ["four events in a row on the other side prove a change", "60l | 4b", ["blocks 4/4 of 3, before 60/60"]],
  ["three do not", "60l | 3b", []],
  ["a rule that blocks begins to log", "60b | 4l", ["logs 4/4 of 3, before 60/60"]],
  ["challenged is on the side of blocked", "60l | 4c", ["challenges 4/4 of 3, before 60/60"]],
  ["a rule that challenges instead of blocking has not changed", "60b | 20c", []],
  ["other actions are left out", "60l | 10o b b 10o b b", ["blocks 4/4 of 2, before 60/60"]],
  ["fewer than twenty events show nothing", "19l | 9b", []],
  ["the last hour is not part of what is usual", "30l 9b", []],
  ["a mixed rule is not judged", "9l b 9l b 9l b 9l b 9l b | 9b", []],
  ["an exception is no change", "60l b 60l b | b 3l b", []],
  [
    "a slow change does not become usual before it is found",
    "60l | b | b | b | b",
    ["blocks 4/4 of 3, before 60/60"],
  ],
  ["a change is reported once", "60l | 40b", ["blocks 4/4 of 3, before 60/60"]],
  [
    "a change back is another change, once the new action is usual",
    "60l | 60b | 4l",
    ["blocks 4/4 of 3, before 60/60", "logs 4/4 of 3, before 41/41"],
  ],
])("%s", (_name, text, flips) => {
  expect(watch(text)).toEqual(flips);
});

test.each([
  ["one address is no change, however many events it sends", ["192.0.2.1"], []],
  ["two addresses are one", ["192.0.2.1", "192.0.2.2"], ["blocks 4/4 of 2, before 60/60"]],
  ["unknown addresses count as none", [""], []],
])("%s", (_name, addresses, flips) => {
  expect(watch("60l | 30b", addresses)).toEqual(flips);
});
