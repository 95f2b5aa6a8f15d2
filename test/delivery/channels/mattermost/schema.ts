import { z } from "zod";
import { text } from "../../support/characters.ts";

const attachment = z.strictObject({
  fallback: text(1_000),
  color: z.string().regex(/^#[0-9a-f]{6}$/),
  text: text(16_383),
  fields: z.array(z.strictObject({ short: z.literal(true), title: text(100), value: text(2_000) })).max(6),
});

const props = z.strictObject({ attachments: z.tuple([attachment]) });

/** The message of an alert, posted or edited. */
export const mattermostPost = z
  .strictObject({ message: z.literal(""), props })
  .refine((body) => Array.from(JSON.stringify(body.props)).length <= 760_000, "properties are too long");

/** Further posts, in the thread or as a note. */
export const mattermostText = z.strictObject({ message: text(16_383) });

const key = { channel_id: z.string().regex(/^[a-z0-9]{26}$/), pending_post_id: z.string().min(1) };
/** The documented bodies of creating and of patching a post. */
export const mattermostCreate = z.strictObject({
  ...key,
  message: z.string().max(16_383),
  props: props.optional(),
  root_id: z.string().optional(),
});
export const mattermostPatch = z.strictObject({ props });
