import { z } from "zod";
import { text } from "../../support/characters.ts";

const keys = { routing_key: text(32).min(32), dedup_key: text(255) };

/** Events API v2, as its reference documents an alert event. */
export const pagerDutyRequest = z
  .discriminatedUnion("event_action", [
    z.strictObject({ ...keys, event_action: z.literal("resolve") }),
    z.strictObject({ ...keys, event_action: z.literal("acknowledge") }),
    z.strictObject({
      ...keys,
      event_action: z.literal("trigger"),
      client: z.string().optional(),
      client_url: z.url().optional(),
      links: z.array(z.strictObject({ href: z.url(), text: z.string().optional() })).optional(),
      images: z
        .array(z.strictObject({ src: z.url(), href: z.url().optional(), alt: z.string().optional() }))
        .optional(),
      payload: z.strictObject({
        summary: text(1_024),
        source: z.string().min(1),
        severity: z.enum(["critical", "error", "warning", "info"]),
        timestamp: z.iso.datetime().optional(),
        component: z.string().optional(),
        group: z.string().optional(),
        class: z.string().optional(),
        custom_details: z.record(z.string(), z.unknown()).optional(),
      }),
    }),
  ])
  .refine((event) => Buffer.byteLength(JSON.stringify(event)) <= 512_000, "more than 512 KB");
