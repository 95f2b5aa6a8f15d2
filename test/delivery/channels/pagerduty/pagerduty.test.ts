import { describe, expect, test } from "vitest";
import {
  PAGERDUTY_LIMITS,
  pagerduty,
  toPagerDutyEvent,
} from "#delivery/receivers/channels/pagerduty/pagerduty.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { messageOf, messageSaying } from "../../support/messages.ts";
import { CANARY, NOW, POSTING, ROUTING_KEY, sendOptions } from "../../support/receiver.ts";
import { pagerDutyRequest } from "./schema.ts";

const render = (message: AlertMessage) => ({ routing_key: "0".repeat(32), ...toPagerDutyEvent(message) });
const summaryOf = (message: AlertMessage) => {
  const event = toPagerDutyEvent(message);
  return event.event_action === "trigger" ? event.payload.summary : "";
};

describeFormat("pagerduty", render, pagerDutyRequest);

test.each<[string, Partial<AlertMessage>, string]>([
  ["a new alert", {}, "trigger"],
  ["a worse one", { reason: "worse" }, "trigger"],
  ["a worse one that is acknowledged", { reason: "worse", state: "acknowledged" }, "trigger"],
  ["a repeat", { reason: "repeat" }, "trigger"],
  ["a repeat of an acknowledged one", { reason: "repeat", state: "acknowledged" }, "acknowledge"],
  ["advice", { reason: "advice" }, "trigger"],
  ["advice that comes after the end", { reason: "advice", ...ENDED }, "resolve"],
  ["a resolve", { reason: "resolved", ...ENDED }, "resolve"],
])("%s is sent as the action that keeps one incident", (_what, over, action) => {
  expect(toPagerDutyEvent(messageOf(over))).toMatchObject({ event_action: action, dedup_key: "episode-7" });
});

test("PagerDuty's plain text fields have &, < and > as they are", () => {
  const text = "/search?q=1&r=<script>&amp;";
  const row = { value: text, count: 3, share: 1 };
  const top = { ...messageOf().top, paths: [row] };
  const advice = { state: "present", text, reason: null } as const;
  const message = messageOf({ headline: `rule 942100: ${text}`, top, advice, links: [] });
  const shown = stringsOf(render(message));
  expect(summaryOf(message)).toBe(`rule 942100: ${text}`);
  expect(shown).toContain(`${text} 3 (100 %)`);
  expect(shown).toContain(text);
  expect(shown.join("")).not.toMatch(/[＆‹›]/);
});

test("a summary names zone and rule once, whether the headline does or not", () => {
  const headline = "SQL injection: rule 942100 in zone 101 is spiking, 312 events in 3 min";
  expect(summaryOf(messageOf({ headline }))).toBe(headline);
  expect(summaryOf(messageOf({ headline: "much more than usual" }))).toBe(
    "zone 101 · rule 942100 SQL injection detected via libinjection: much more than usual",
  );
});

describe.each(["x", "💥"])("a summary of %s", (unit) => {
  const sized = (size: number) => messageOf({ kind: "self", zoneId: null, headline: unit.repeat(size) });
  const room = PAGERDUTY_LIMITS.summary - "Longwatch: ".length;

  test("keeps a text of the maximum length and cuts a longer one between code points", () => {
    expect(summaryOf(sized(room))).toBe(`Longwatch: ${unit.repeat(room)}`);
    expect(summaryOf(sized(room + 1))).toBe(`Longwatch: ${unit.repeat(room - 1)}…`);
  });
});

test("the posted texts have no code and no mention, and markup only in plain text fields (F71)", () => {
  const ours = stringsOf(toPagerDutyEvent(messageSaying("x"))).join("\n");
  expect(ours).not.toMatch(/[<>&`]|@(?=\w)/);
  for (const text of Object.values(HOSTILE)) {
    const event = toPagerDutyEvent(messageSaying(text));
    expect(stringsOf(event).join("\n")).not.toMatch(/`|@(?=\w)/);
    if (event.event_action !== "trigger") throw new Error("the event does not trigger");
    const { links, payload, ...rest } = event;
    const { summary, component, custom_details, ...others } = payload;
    const hrefs = links.map(({ href }) => href);
    expect(stringsOf({ rest, others, hrefs }).join("\n")).not.toMatch(/[<>&]/);
    const shown = stringsOf({ texts: links.map((link) => link.text), summary, component, custom_details });
    expect(shown.join("\n")).not.toMatch(/:\/\/|\bwww\.|mailto:/i);
  }
});

test("the key travels in the body and nowhere else", async () => {
  const receiver = await startReplyQueue();
  receiver.reply(202, { status: "success", message: "Event processed", dedup_key: "episode-7" });
  await POSTING.pagerduty?.(receiver.url).send(messageOf(), sendOptions());
  await receiver.close();
  const [request] = receiver.requests;
  expect(request).toMatchObject({ method: "POST", path: "/v2/enqueue" });
  expect(pagerDutyRequest.parse(JSON.parse(request?.body ?? ""))).toMatchObject({ routing_key: ROUTING_KEY });
  expect(JSON.stringify(request?.headers)).not.toContain(CANARY);
});

test("the error for a key of the wrong length does not contain the key", () => {
  const routingKey = createSecret(CANARY);
  const open = () => pagerduty.open({ name: "pager", routingKey, clock: () => NOW });
  expect(open).toThrow("channel pager: routingKey: must be 32 characters");
});
