import { expect, onTestFinished, test } from "vitest";
import { toCardText, toGoogleChatMessage } from "#delivery/receivers/channels/google-chat/google-chat.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { incidentWith, messageOf, messageSaying } from "../../support/messages.ts";
import { ANSWERS, CANARY, failureOf, POSTING, sendOptions } from "../../support/receiver.ts";
import { googleChatMessage } from "./schema.ts";

describeFormat("google-chat", toGoogleChatMessage, googleChatMessage);

async function startSpace() {
  const receiver = await startReplyQueue();
  onTestFinished(() => receiver.close());
  const notifier = POSTING["google-chat"]?.(receiver.url);
  if (notifier === undefined) throw new Error("no channel");
  const accept = () => receiver.reply(200, ANSWERS["google-chat"]?.body);
  const read = () =>
    receiver.requests.map(({ path, body }) => ({
      query: new URL(path, "https://x.example").searchParams,
      body: googleChatMessage.parse(JSON.parse(body)),
    }));
  return { receiver, notifier, accept, read };
}

test.each(Object.entries(HOSTILE))("%s mentions nobody and is no tag (F71)", (_name, text) => {
  for (const reason of ["first", "advice", "resolved"] as const) {
    const { cardsV2, fallbackText } = toGoogleChatMessage(messageSaying(text, { reason }));
    const [{ card } = { card: null }] = cardsV2;
    expect(fallbackText).not.toMatch(/[<>]/);
    expect(JSON.stringify(card)).not.toMatch(/<(?!\/?b>)|@(?=[\p{L}\p{N}_])/u);
  }
});

test("an entity is kept whole or left out", () => {
  expect(toCardText("&&&", 15)).toBe("&amp;&amp;&amp;");
  expect(toCardText("&&&&", 15)).toBe("&amp;&amp;…");
});

test("the messages of an alert are one thread, apart from those that must notify", async () => {
  const { notifier, accept, read } = await startSpace();
  const reasons = ["first", "worse", "repeat", "advice", "resolved"] as const;
  for (const reason of reasons) {
    accept();
    await notifier.send(messageOf({ reason, ...(reason === "resolved" ? ENDED : {}) }), sendOptions());
  }
  const threads = read().map(({ body }) => body.thread?.threadKey ?? null);
  expect(threads).toEqual(["episode-7", null, null, "episode-7", "episode-7"]);
  for (const { query } of read()) {
    expect(query.get("messageReplyOption")).toBe("REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD");
    expect(query.get("token")).toBe(CANARY);
  }
});

test("every attempt of a message has its own request id again, and every part another", async () => {
  const { notifier, accept, read } = await startSpace();
  for (let call = 0; call < 6; call += 1) accept();
  await notifier.send(incidentWith(5_000), sendOptions());
  const parts = read().length;
  await notifier.send(incidentWith(5_000), sendOptions({ attempt: 2 }));
  const ids = read().map(({ query }) => query.get("requestId"));
  expect(new Set(ids.slice(0, parts)).size).toBe(parts);
  expect(ids.slice(parts)).toEqual(ids.slice(0, parts));
  expect(stringsOf(read().map(({ body }) => body)).join()).toContain("104999");
});

test("a refusal names Google's status, and no more of the answer", async () => {
  const { receiver, notifier } = await startSpace();
  const error = { code: 403, message: `no ${CANARY}`, status: "PERMISSION_DENIED" };
  receiver.reply(403, { error });
  const failure = await failureOf(notifier.send(messageOf(), sendOptions()));
  expect(failure).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
  expect(failure.message).toMatch(/ 403, PERMISSION_DENIED$/);
});
