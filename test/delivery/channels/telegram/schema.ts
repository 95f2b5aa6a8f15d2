import { z } from "zod";
import { text } from "../../support/characters.ts";

const TAGS = /<(b|code|blockquote expandable|a href="[^"<>]*")>|<\/(b|code|blockquote|a)>/g;

/** Returns the text that Telegram shows, and how many pieces of it have a format. */
function parse(html: string) {
  const open: string[] = [];
  let entities = 0;
  for (const [, start, end] of html.matchAll(TAGS)) {
    if (start !== undefined) {
      open.push(start.split(" ")[0] ?? "");
      entities += 1;
    } else if (open.pop() !== end) return null;
  }
  const rest = html.replaceAll(TAGS, "");
  const isRead = open.length === 0 && !/[<>]|&(?!(?:amp|lt|gt|quot|#\d+);)/.test(rest);
  return isRead ? { shown: rest.replaceAll(/&(?:\w+|#\d+);/g, "x"), entities } : null;
}

/** Text in the HTML that the Bot API reads, within its limits after entities are parsed. */
export const telegramText = z.string().superRefine((html, context) => {
  const parsed = parse(html);
  if (parsed === null) return context.addIssue("is not Telegram's HTML");
  const { error } = text(4_096).safeParse(parsed.shown);
  if (error !== undefined || parsed.shown.trim() === "") context.addIssue("is too long or empty");
  return parsed.entities > 100 ? context.addIssue("more than 100 entities") : undefined;
});

const shared = {
  chat_id: z.string(),
  text: telegramText,
  parse_mode: z.literal("HTML"),
  link_preview_options: z.strictObject({ is_disabled: z.literal(true) }),
};

/** The documented parameters of sendMessage and of editMessageText, as far as an alert may use them. */
export const telegramPost = z.strictObject({
  ...shared,
  message_thread_id: z.number().int().optional(),
  disable_notification: z.literal(true).optional(),
  reply_parameters: z
    .strictObject({ message_id: z.number().int(), allow_sending_without_reply: z.literal(true) })
    .optional(),
});
export const telegramEdit = z.strictObject({ ...shared, message_id: z.number().int() });

/** The list of rules, which is sent by sendDocument: at most 50 MB. */
export const telegramFile = z.strictObject({ document: z.string().min(1).max(10_000_000) });
