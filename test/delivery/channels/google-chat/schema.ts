import { z } from "zod";
import { text } from "../../support/characters.ts";

/** Text in the HTML of a card, as far as an alert may use it. */
const html = text(32_000).refine(
  (value) => !/[<>]|&(?!(?:amp|lt|gt);)/.test(value.replaceAll(/<\/?b>/g, "")),
  "has a tag or an entity that a card does not know",
);

const button = z.strictObject({
  text: text(80),
  onClick: z.strictObject({ openLink: z.strictObject({ url: z.url() }) }),
});

const widget = z.union([
  z.strictObject({ textParagraph: z.strictObject({ text: html }) }),
  z.strictObject({ buttonList: z.strictObject({ buttons: z.array(button).min(1) }) }),
]);

const card = z.strictObject({
  header: z.strictObject({ title: text(200), subtitle: text(300).optional() }),
  sections: z.tuple([z.strictObject({ widgets: z.array(widget).min(1).max(100) })]),
});

/** The documented body of spaces.messages.create, as far as an alert may use it. */
export const googleChatMessage = z
  .strictObject({
    fallbackText: text(1_000),
    cardsV2: z.tuple([z.strictObject({ cardId: z.literal("alert"), card })]),
    thread: z.strictObject({ threadKey: text(4_000) }).optional(),
  })
  .refine((body) => Buffer.byteLength(JSON.stringify(body)) <= 32_000, "more than 32,000 bytes");
