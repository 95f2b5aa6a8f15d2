import { z } from "zod";
import { text } from "../../support/characters.ts";

const priority = z.enum(["P1", "P2", "P3", "P4", "P5"]);
const act = z.strictObject({ source: text(100), note: text(25_000), user: text(100).optional() });

const create = z.strictObject({
  message: text(130),
  alias: text(512),
  description: text(15_000),
  entity: text(512),
  source: text(100),
  priority,
  tags: z.array(text(50)).max(20),
  details: z
    .record(z.string(), z.string())
    .refine((details) => Object.entries(details).flat().join("").length <= 8_000, "more than 8000 in all"),
});

/** The requests that Opsgenie and Jira Service Management have in common. */
export const sharedRequests = [
  z.strictObject({
    method: z.literal("POST"),
    path: z.literal("/v2/alerts"),
    byAlias: z.literal(false),
    body: create,
  }),
  z.strictObject({
    method: z.literal("POST"),
    path: z.string().regex(/^\/v2\/alerts\/[^/]+\/(?:close|acknowledge|notes)$/),
    byAlias: z.literal(true),
    body: act,
  }),
] as const;

/** The Alert API's requests as documented, as far as an alert may use them. */
export const opsgenieRequests = z
  .array(
    z.union([
      ...sharedRequests,
      z.strictObject({
        method: z.literal("PUT"),
        path: z.string().regex(/^\/v2\/alerts\/[^/]+\/priority$/),
        byAlias: z.literal(true),
        body: z.strictObject({ priority }),
      }),
    ]),
  )
  .min(1);
