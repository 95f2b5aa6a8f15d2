import { z } from "zod";
import { text } from "../../support/characters.ts";

const messageId = z.string().regex(/^<[a-z0-9.]+@[a-z0-9.-]+>$/);
const line = (most: number) => text(most).regex(/^[^\r\n]*$/, "more than a line");

/** The only markup a mail may hold. */
const TAGS =
  /<\/?(?:!doctype html|html|body(?: style="font-family:sans-serif")?|h2(?: style="color:#[0-9a-f]{6}")?|p|b|br|blockquote|code|table(?: cellpadding="3")?|tr|td(?: align="right")?|a(?: href="https?[^"<>]+")?)>/g;

/** The input of the mail library: header values without line breaks, HTML with our own tags only. */
export const emailMessage = z.strictObject({
  messageId,
  inReplyTo: messageId.optional(),
  references: messageId.optional(),
  subject: line(160),
  text: text(20_000),
  // Gmail cuts a mail after 102 KB.
  html: text(102_000).refine((html) => {
    const rest = html.replaceAll(TAGS, "");
    return !/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/.test(rest);
  }, "markup that is not ours"),
  priority: z.enum(["high", "normal"]),
  headers: z.record(z.string().regex(/^[a-z-]+$/), line(100)),
  attachments: z
    .tuple([
      z.strictObject({
        filename: z.literal("rules.txt"),
        // Far below what the strictest of the large mail services takes.
        content: z.string().refine((content) => Buffer.byteLength(content) < 6_000_000, "too large"),
        contentType: z.literal("text/plain; charset=utf-8"),
      }),
    ])
    .optional(),
});
