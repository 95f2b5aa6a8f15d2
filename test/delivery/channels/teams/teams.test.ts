import { expect, onTestFinished, test } from "vitest";
import { TEAMS_MAX_BYTES, toTeamsMessage } from "#delivery/receivers/channels/teams/teams.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat } from "../../support/format-promises.ts";
import { messageOf, messageSaying } from "../../support/messages.ts";
import { POSTING, sendOptions } from "../../support/receiver.ts";
import { teamsRequest } from "./schema.ts";

describeFormat("teams", toTeamsMessage, teamsRequest);

const sizeOf = (message: AlertMessage) => Buffer.byteLength(JSON.stringify(toTeamsMessage(message)));

test.each(["{{DATE(2026-11-21T00:00:00Z)}}", "${$root.secret}", "@{triggerBody()}", "{{{{x}}}}"])(
  "%s is text and no function of a card, a template or a flow (F71)",
  (text) => {
    for (const reason of ["first", "advice", "resolved"] as const) {
      expect(stringsOf(toTeamsMessage(messageSaying(text, { reason }))).join("\n")).not.toMatch(/[{$@]\{/);
    }
  },
);

test("a card never exceeds the limit of a message and cuts no character", () => {
  const rows = Array.from({ length: 3 }, () => ({ value: "💥".repeat(120), count: 1, share: 0.1 }));
  const top = { ips: rows, asns: rows, countries: rows, paths: rows, userAgents: rows, ja4s: rows };
  const sized = (characters: number) =>
    messageOf({
      headline: "💥".repeat(500),
      howToSilence: "💥".repeat(400),
      top,
      advice: { state: "present", text: "💥".repeat(characters), reason: null },
    });
  const sizes = Array.from({ length: 60 }, (_, index) => sizeOf(sized(index * 50)));
  const peak = Math.max(...sizes);

  expect(peak).toBeLessThanOrEqual(TEAMS_MAX_BYTES);
  // Where it does not fit as it is, and not before, it is cut.
  expect(peak).toBeGreaterThan(TEAMS_MAX_BYTES - 4 * 50);
  expect(sizes.at(-1)).toBeLessThan(peak);
});

test.each<[number, string, object | null]>([
  [202, "", null],
  [202, '{"status":"Accepted"}', null],
  [200, "1", null],
  [200, "", null],
  [
    200,
    "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0",
    { code: "ENDPOINT_BUSY", disposition: "wait" },
  ],
  [
    200,
    "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413 with ContextId tcid=0",
    { code: "ENDPOINT_REJECTED", disposition: "give-up" },
  ],
  [200, "Summary or Text is required.", { code: "ENDPOINT_UNAVAILABLE", disposition: "retry" }],
])("%i with %j is judged by what Teams documents", async (status, body, failure) => {
  const receiver = await startReplyQueue();
  onTestFinished(() => receiver.close());
  receiver.reply(status, body);
  const sent = POSTING["teams"]?.(receiver.url).send(messageOf(), sendOptions()) ?? Promise.reject();
  const outcome = await sent.catch((thrown: unknown) => thrown);
  expect(outcome).toMatchObject(failure ?? { providerReference: null });
});
