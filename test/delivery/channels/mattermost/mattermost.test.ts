import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { toMattermost, toMattermostPost } from "#delivery/receivers/channels/mattermost/mattermost.ts";
import { toCodeSpan } from "#delivery/rules/message/write-document.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type ReplyQueue, startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { CONSOLE, incidentWith, messageOf, messageSaying } from "../../support/messages.ts";
import { CANARY, CHANNEL_ID, failureOf, POST_ID, POSTING, sendOptions } from "../../support/receiver.ts";
import { mattermostCreate, mattermostPatch, mattermostPost } from "./schema.ts";

describeFormat("mattermost", toMattermostPost, mattermostPost);

test.each(Object.entries({ ...HOSTILE, heading: "====", latex: "$x$ tel:112 ~town-square evil.com/x" }))(
  "%s formats, links and mentions nothing (F71)",
  (_name, text) => {
    for (const reason of ["first", "advice", "resolved"] as const) {
      const [attachment] = toMattermostPost(messageSaying(text, { reason })).props.attachments;
      const prose = [attachment?.text, ...stringsOf(attachment?.fields)]
        .join("\n")
        .replaceAll(`](${CONSOLE})`, "\\]")
        .replaceAll(/`[^`\n]*`|&(?:amp|lt|#36);/g, "")
        .replaceAll(/\*\*[\w ',.()]+\*\*|^> |^\[/gm, "");
      expect(prose.replaceAll(/\\[\\*{}[\]()#+\-!_>~|]/g, "")).not.toMatch(/[\\*{}[\]#!_>~|<`$]|^=/m);
      expect(prose).not.toMatch(/[@#~](?=[\p{L}\p{N}_])|\.(?=\p{L})|(?<!\d|\*):(?=\p{L})/u);
      expect(prose).not.toContain("&");
    }
  },
);

test("a text of the maximum length stays whole, and no escape is cut in half", () => {
  expect(toMattermost("x".repeat(40), 40)).toBe("x".repeat(40));
  expect(toMattermost("💥".repeat(41), 40)).toBe(`${"💥".repeat(39)}…`);
  expect(toMattermost("****", 7)).toBe("\\*\\*\\*…");
  expect(toCodeSpan("a`b", 9)).toBe("`aˋb`");
});

describe("a bot", () => {
  let receiver: ReplyQueue;
  const accept = (status = 201) => receiver.reply(status, { id: POST_ID });
  const send = (over: Partial<AlertMessage>, providerReference: string | null = null) =>
    POSTING["mattermost"]?.(receiver.url).send(messageOf(over), sendOptions({ providerReference })) ??
    Promise.reject();
  const asked = () => receiver.requests.map(({ method, path }) => `${method} ${path}`);
  const bodyOf = (index: number) => JSON.parse(receiver.requests[index]?.body ?? "");
  const [CREATE, EDIT] = ["POST /api/v4/posts", `PUT /api/v4/posts/${POST_ID}/patch`];

  beforeEach(async () => {
    receiver = await startReplyQueue();
  });
  afterEach(() => receiver.close());

  test("posts the first message with the token and edits it later", async () => {
    accept();
    accept(200);
    accept(200);
    expect(await send({})).toEqual({ providerReference: POST_ID });
    await send({ reason: "advice" }, POST_ID);
    expect(await send({ reason: "resolved", ...ENDED }, POST_ID)).toEqual({ providerReference: POST_ID });
    expect(asked()).toEqual([CREATE, EDIT, EDIT]);
    expect(receiver.requests[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
    expect(mattermostCreate.parse(bodyOf(0))).toMatchObject({ channel_id: CHANNEL_ID });
    mattermostPatch.parse(bodyOf(2));
  });

  test("every attempt of a post has the same id, by which the server drops a repetition", async () => {
    accept();
    accept();
    await send({});
    await send({});
    expect(bodyOf(1).pending_post_id).toBe(bodyOf(0).pending_post_id);
  });

  test.each(["worse", "repeat"] as const)(
    "edits the post for %s, and notifies with a note",
    async (reason) => {
      accept(200);
      accept();
      expect(await send({ reason }, POST_ID)).toEqual({ providerReference: POST_ID });
      expect(asked()).toEqual([EDIT, CREATE]);
      expect(mattermostCreate.parse(bodyOf(1))).not.toHaveProperty("root_id");
    },
  );

  test.each([400, 403, 404])("posts anew where the edit is answered with %i", async (status) => {
    receiver.reply(status, { id: "api.post.update_post.permissions_time_limit.app_error" });
    accept();
    expect(await send({ reason: "advice" }, POST_ID)).toEqual({ providerReference: POST_ID });
    expect(asked()).toEqual([EDIT, CREATE]);
  });

  test("a refusal names the server's reason, and a full server is waited for", async () => {
    receiver.reply(403, { id: "api.context.permissions.app_error", message: CANARY });
    const refused = await failureOf(send({}));
    expect(refused).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
    expect(refused.message).toMatch(/ 403, api\.context\.permissions\.app_error$/);
    receiver.reply(429, "limit exceeded", { "retry-after": "2" });
    expect(await failureOf(send({}, POST_ID))).toMatchObject({ disposition: "wait", waitMs: 2_000 });
  });

  test("the list of a group is in the thread of its post", async () => {
    for (let call = 0; call < 9; call += 1) accept();
    await POSTING["mattermost"]?.(receiver.url).send(incidentWith(5_000), sendOptions());
    const [first, ...replies] = receiver.requests.map(({ body }) => mattermostCreate.parse(JSON.parse(body)));
    expect(first).not.toHaveProperty("root_id");
    expect(replies.length).toBeGreaterThan(1);
    for (const reply of replies) expect(reply.root_id).toBe(POST_ID);
    const ids = [first, ...replies].map((body) => body?.pending_post_id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("a reference that is no id is never part of an address", async () => {
    accept();
    await send({ reason: "advice" }, "../../users");
    expect(asked()).toEqual([CREATE]);
  });
});
