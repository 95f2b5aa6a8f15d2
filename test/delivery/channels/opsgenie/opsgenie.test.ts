import { describe, expect, test } from "vitest";
import { OPSGENIE_LIMITS, toOpsgenieRequests } from "#delivery/receivers/channels/opsgenie/opsgenie.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { messageOf, messageSaying } from "../../support/messages.ts";
import { CANARY, failureOf, POSTING, sendOptions } from "../../support/receiver.ts";
import { opsgenieRequests } from "./schema.ts";

describeFormat("opsgenie", toOpsgenieRequests, opsgenieRequests);

test.each<[string, Partial<AlertMessage>, string[]]>([
  ["a new alert", {}, ["POST /v2/alerts"]],
  ["a worse one", { reason: "worse" }, ["POST /v2/alerts", "PUT /v2/alerts/episode-7/priority"]],
  ["a repeat", { reason: "repeat" }, ["POST /v2/alerts"]],
  [
    "a repeat of an acknowledged one",
    { reason: "repeat", state: "acknowledged" },
    ["POST /v2/alerts/episode-7/acknowledge"],
  ],
  ["advice", { reason: "advice" }, ["POST /v2/alerts/episode-7/notes"]],
  ["advice after the end", { reason: "advice", ...ENDED }, ["POST /v2/alerts/episode-7/close"]],
  ["a resolve", { reason: "resolved", ...ENDED }, ["POST /v2/alerts/episode-7/close"]],
])("%s sends the requests that keep one alert in Opsgenie", (_what, over, asked) => {
  expect(toOpsgenieRequests(messageOf(over)).map(({ method, path }) => `${method} ${path}`)).toEqual(asked);
});

test("an alias is escaped where it is part of an address", () => {
  const [request] = toOpsgenieRequests(messageOf({ dedupeKey: "../a/b?c#d", reason: "advice" }));
  expect(request?.path).toBe("/v2/alerts/..%2Fa%2Fb%3Fc%23d/notes");
});

test("no text holds markup or a mention (F71)", () => {
  for (const text of Object.values(HOSTILE)) {
    const bodies = toOpsgenieRequests(messageSaying(text, { links: [] })).map(({ body }) => body);
    expect(stringsOf(bodies).join("\n")).not.toMatch(/[<>&`]|@(?=\w)/);
  }
});

describe.each(["x", "💥"])("a message of %s", (unit) => {
  test("keeps a text of the maximum length and cuts a longer one between code points", () => {
    const messageText = (size: number) => {
      const [request] = toOpsgenieRequests(messageOf({ headline: unit.repeat(size) }));
      return request?.body.message;
    };
    expect(messageText(OPSGENIE_LIMITS.message)).toBe(unit.repeat(OPSGENIE_LIMITS.message));
    expect(messageText(OPSGENIE_LIMITS.message + 1)).toBe(`${unit.repeat(OPSGENIE_LIMITS.message - 1)}…`);
  });
});

describe("sending", () => {
  test("the key is a header, `identifierType` is alias, and a raised priority follows the alert", async () => {
    const receiver = await startReplyQueue();
    for (let call = 0; call < 2; call += 1) receiver.reply(202, { result: "Request will be processed" });
    await POSTING.opsgenie?.(receiver.url).send(messageOf({ reason: "worse" }), sendOptions());
    await receiver.close();
    expect(receiver.requests.map(({ method, path }) => `${method} ${path.replaceAll(CANARY, "T")}`)).toEqual([
      "POST /T/v2/alerts",
      "PUT /T/v2/alerts/episode-7/priority?identifierType=alias",
    ]);
    for (const { headers } of receiver.requests)
      expect(headers.authorization).toBe(`GenieKey ${CANARY}-genie`);
  });

  test("if the second request fails, both requests are tried again", async () => {
    const receiver = await startReplyQueue();
    receiver.reply(202, { result: "Request will be processed" });
    receiver.reply(503);
    const sent = POSTING.opsgenie?.(receiver.url).send(messageOf({ reason: "worse" }), sendOptions());
    expect(await failureOf(sent ?? Promise.resolve())).toMatchObject({ disposition: "retry" });
    await receiver.close();
  });
});

test("a note of the advice holds the advice, not the page once more", () => {
  const [request] = toOpsgenieRequests(messageOf({ reason: "advice", transition: 2 }));
  expect(request?.body["note"]).toContain("Block AS64500 for an hour.");
  expect(request?.body["note"]).not.toContain("203.0.113.7");
});

test("an acknowledgement names the person", () => {
  const over = {
    reason: "acknowledged",
    state: "acknowledged",
    headline: "Acknowledged by alice: flood",
  } as const;
  expect(toOpsgenieRequests(messageOf(over))).toMatchObject([
    { body: { note: "Acknowledged by alice: flood" } },
  ]);
});
