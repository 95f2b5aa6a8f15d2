import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sendParts } from "#delivery/receivers/post.ts";
import { type ReplyQueue, startReplyQueue } from "../platform/support/reply-queue.ts";
import { incidentWith } from "./support/messages.ts";
import { ANSWERS, failureOf, PLAIN_ANSWER, POSTING, sendOptions } from "./support/receiver.ts";

let receiver: ReplyQueue;

beforeEach(async () => {
  receiver = await startReplyQueue();
});
afterEach(() => receiver.close());

const IN_PARTS = [
  "webhook",
  "slack",
  "slack-bot",
  "teams",
  "opsgenie",
  "jira-service-management",

  "mattermost",
  "google-chat",
];

describe.each(IN_PARTS)("%s", (kind) => {
  const answer = ANSWERS[kind] ?? PLAIN_ANSWER;
  const open = () => {
    const make = POSTING[kind];
    if (make === undefined) throw new Error(kind);
    return make(receiver.url);
  };
  const flood = incidentWith(5_000);

  test("a retry continues with the part that failed and does not repeat the first message", async () => {
    const progressed: string[] = [];
    receiver.reply(200, answer.body);
    receiver.reply(200, answer.body);
    receiver.reply(503, "");
    const onProgress = (progress: string) => void progressed.push(progress);
    await failureOf(open().send(flood, sendOptions({ onProgress })));
    for (let index = 0; index < 20; index += 1) receiver.reply(200, answer.body);
    const sent = await open().send(flood, sendOptions({ progress: progressed.at(-1) ?? null, attempt: 2 }));

    expect(progressed).toHaveLength(2);
    const bodies = receiver.requests.map(({ body }) => body);
    const [failed, again] = [bodies[2] ?? "", bodies[3] ?? ""];
    const stable = (body: string) => body.replaceAll(/"timestamp":"[^"]+"/g, "");
    expect(stable(again)).toBe(stable(failed));
    const named = new Set(
      bodies
        .join()
        .replaceAll("\\n", "\n")
        .match(/\b1\d{5}\b/g),
    );
    const rules = Array.from({ length: 5_000 }, (_, index) => String(100_000 + index));
    expect(rules.filter((rule) => !named.has(rule))).toEqual([]);
    expect(sent.providerReference).toBe(answer.reference);
    expect(sent.messages ?? 1).toBe(bodies.length - 3);
    expect(new Set(bodies.map(stable)).size).toBe(bodies.length - 1);
  });
});

test("every message of a webhook has an id of its own, the same at every attempt", async () => {
  for (const _ of [1, 2]) {
    for (let index = 0; index < 5; index += 1) receiver.reply(200, "ok");
    await POSTING["webhook"]?.(receiver.url).send(incidentWith(5_000), sendOptions());
  }
  const ids = receiver.requests.map(({ headers }) => String(headers["webhook-id"]));
  const [first, second] = [ids.slice(0, ids.length / 2), ids.slice(ids.length / 2)];
  expect(new Set(first).size).toBe(first.length);
  expect(second).toEqual(first);
});

test("the list of a group is in the thread of its message and notifies nobody", async () => {
  for (let index = 0; index < 9; index += 1) receiver.reply(200, ANSWERS["slack-bot"]?.body);
  await POSTING["slack-bot"]?.(receiver.url).send(incidentWith(5_000), sendOptions());
  const [page, ...replies] = receiver.requests.map(({ body }) => JSON.parse(body));
  expect(page).not.toHaveProperty("thread_ts");
  expect(replies.length).toBeGreaterThan(1);
  for (const reply of replies) {
    expect(reply).toMatchObject({ channel: "C0123", thread_ts: "1732197780.000100" });
    expect(reply).not.toHaveProperty("reply_broadcast");
  }
});

test("unreadable progress starts from the beginning, and progress beyond the end sends nothing", async () => {
  const sent: number[] = [];
  const send = (progress: string) =>
    sendParts(3, sendOptions({ progress, providerReference: "edit me" }), async (index, reference) => {
      sent.push(index);
      return reference;
    });
  expect(await send("nonsense")).toEqual({ providerReference: "edit me", messages: 3 });
  expect(await send("part 2 C1:2.3")).toEqual({ providerReference: "C1:2.3" });
  expect(await send("part 9")).toEqual({ providerReference: null, messages: 0 });
  expect(sent).toEqual([0, 1, 2, 2]);
});
