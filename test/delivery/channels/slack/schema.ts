import { z } from "zod";
import { text } from "../../support/characters.ts";

const mrkdwn = (most: number) =>
  z.strictObject({ type: z.literal("mrkdwn"), text: text(most), verbatim: z.literal(true) });

/** Block Kit as its reference documents it, as far as an alert may use it. */
const block = z.union([
  z.strictObject({
    type: z.literal("header"),
    text: z.strictObject({ type: z.literal("plain_text"), text: text(150), emoji: z.literal(false) }),
  }),
  z.strictObject({ type: z.literal("section"), text: mrkdwn(3_000) }),
  z.strictObject({ type: z.literal("section"), fields: z.array(mrkdwn(2_000)).min(1).max(10) }),
  z.strictObject({ type: z.literal("context"), elements: z.array(mrkdwn(3_000)).min(1).max(10) }),
]);

const words = { text: text(40_000), blocks: z.array(block).min(1).max(50) };
const noPreviews = {
  unfurl_links: z.literal(false),
  unfurl_media: z.literal(false),
  mrkdwn: z.literal(false),
};

/** The message of an alert, posted or edited. */
export const slackWords = z.strictObject(words);

/** The documented arguments of chat.postMessage, and of chat.update. */
export const slackPost = z.strictObject({ channel: z.string().min(1), ...words, ...noPreviews });
export const slackUpdate = z.strictObject({
  channel: z.string().min(1),
  ts: z.string().regex(/^\d+\.\d+$/),
  ...words,
});
export const slackReply = z.strictObject({
  channel: z.string().min(1),
  thread_ts: z.string().regex(/^\d+\.\d+$/),
  reply_broadcast: z.literal(true),
  text: text(40_000),
  ...noPreviews,
});
