import { z } from "zod";
import { text } from "../../support/characters.ts";

const look = {
  color: z.enum(["default", "dark", "light", "accent", "good", "warning", "attention"]).optional(),
  fontType: z.enum(["default", "monospace"]).optional(),
  isSubtle: z.boolean().optional(),
  size: z.enum(["default", "small", "medium", "large", "extraLarge"]).optional(),
  weight: z.enum(["default", "lighter", "bolder"]).optional(),
};

const textRun = z.strictObject({
  type: z.literal("TextRun"),
  text: text(30_000),
  ...look,
  highlight: z.boolean().optional(),
  italic: z.boolean().optional(),
  strikethrough: z.boolean().optional(),
  underline: z.boolean().optional(),
});

const richTextBlock = z.strictObject({
  type: z.literal("RichTextBlock"),
  inlines: z.array(textRun).min(1),
  horizontalAlignment: z.enum(["left", "center", "right"]).optional(),
  separator: z.boolean().optional(),
  spacing: z.enum(["default", "none", "small", "medium", "large", "extraLarge", "padding"]).optional(),
});

/** Adaptive Card 1.4 as its schema documents it, as far as an alert may use it: text runs alone, no Markdown anywhere. */
const adaptiveCard = z.strictObject({
  $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
  type: z.literal("AdaptiveCard"),
  version: z.literal("1.4"),
  msteams: z.strictObject({ width: z.literal("Full") }),
  fallbackText: text(1_000),
  body: z.array(richTextBlock).min(1),
  actions: z
    .array(z.strictObject({ type: z.literal("Action.OpenUrl"), title: text(100), url: z.url() }))
    .min(1)
    .max(6)
    .optional(),
});

/** The envelope of a Workflows webhook, with the message limit of Teams. */
export const teamsRequest = z
  .strictObject({
    type: z.literal("message"),
    attachments: z.tuple([
      z.strictObject({
        contentType: z.literal("application/vnd.microsoft.card.adaptive"),
        contentUrl: z.null(),
        content: adaptiveCard,
      }),
    ]),
  })
  .refine((message) => Buffer.byteLength(JSON.stringify(message)) <= 28_000, "more than 28 KB");
