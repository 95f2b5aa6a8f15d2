import { z } from "zod";
import { text } from "../../support/characters.ts";

/** The documented parameters of a message, without its two keys, as far as an alert may use them. */
export const pushoverMessage = z.strictObject({
  title: text(250),
  message: text(1_024),
  // Emergency, 2, would need `retry` and `expire`.
  priority: z.number().int().min(-2).max(1),
  timestamp: z.number().int(),
  url: z.url().max(512).optional(),
  url_title: text(100).optional(),
});
