import { z } from "zod";
import { text } from "../../support/characters.ts";

const field = z.strictObject({ name: text(256), value: text(1_024), inline: z.boolean().optional() });

const embed = z.strictObject({
  title: text(256).optional(),
  url: z.url({ protocol: /^https?$/ }).optional(),
  description: text(4_096).optional(),
  color: z.number().int().min(0).max(0xffffff).optional(),
  timestamp: z.iso.datetime().optional(),
  fields: z.array(field).max(25).optional(),
  footer: z.strictObject({ text: text(2_048) }).optional(),
});

function countTexts({ title = "", description = "", fields = [], footer }: z.infer<typeof embed>): number {
  const texts = [
    title,
    description,
    footer?.text ?? "",
    ...fields.flatMap(({ name, value }) => [name, value]),
  ];
  return texts.reduce((sum, one) => sum + Array.from(one).length, 0);
}

/** The documented body of Execute Webhook and Edit Webhook Message, as far as an alert may use it. */
export const discordRequest = z.strictObject({
  content: text(2_000),
  allowed_mentions: z.strictObject({ parse: z.tuple([]) }),
  embeds: z
    .array(embed)
    .min(1)
    .max(10)
    .refine(
      (embeds) => embeds.reduce((sum, one) => sum + countTexts(one), 0) <= 6_000,
      "more than 6000 in all",
    )
    .optional(),
});
