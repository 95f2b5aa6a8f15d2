import { z } from "zod";
import { text } from "../../support/characters.ts";

const bytes = (most: number) =>
  text(most).refine((value) => Buffer.byteLength(value) <= most, `more than ${most} bytes`);

/** The documented fields of a notification as JSON, without the topic, as far as an alert may use them. */
export const ntfyNotification = z
  .strictObject({
    sequence_id: z.string().regex(/^[-_A-Za-z0-9]{1,64}$/),
    title: text(150),
    message: bytes(4_096),
    priority: z.number().int().min(1).max(5),
    tags: z.array(text(64)).max(1),
    click: z.url().optional(),
    actions: z.array(z.strictObject({ action: z.literal("view"), label: text(80), url: z.url() })).max(3),
  })
  .refine(
    (body) => Buffer.byteLength(JSON.stringify(body)) <= 8_000,
    "no space for the topic in 8,192 bytes",
  );
