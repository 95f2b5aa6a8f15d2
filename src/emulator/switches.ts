import { z } from "zod";

/**
 * One switch for each behaviour of the platform that is unknown or differs between zones. The observed behaviour is
 * the default.
 */
export const Switches = z.strictObject({
  /** The literal `start` as first token. */
  startToken: z.enum(["accept", "reject"]).default("accept"),
  /** The token of the last page. */
  lastToken: z.enum(["empty", "null"]).default("empty"),
  /** `rows` of a grouped search, `groups` of a flat one. */
  emptySide: z.enum(["null", "list"]).default("null"),
  /** The status block of a success: null, left out, or the all-default block with `success: false`. */
  errorResponse: z.enum(["null", "absent", "default"]).default("null"),
  /** Keys of the 28-day overview. */
  metricDays: z.enum(["dd-MM-yyyy", "iso"]).default("dd-MM-yyyy"),
  /** Success status of the key type change. */
  keyTypeStatus: z.enum(["200", "204"]).default("200"),
  /** A bad key on the key list: 401, or the 500 with the text of an authorisation failure. */
  apiKeyRefusal: z.enum(["401", "500"]).default("401"),
  /** Error bodies of the container operations. */
  containerErrors: z.enum(["object", "array", "string"]).default("object"),
  /** The answer of the AI recommendation. */
  advice: z
    .enum(["ok", "limit-reached", "not-enough-data", "model-failure", "null-text", "empty-text"])
    .default("ok"),
  adviceLatencyMs: z.int().min(0).max(600_000).default(0),
  /** A token older than this is refused; 0 means never. */
  tokenLifetimeMs: z.int().min(0).default(0),
  /** Largest page of the date-paged list. */
  pageSize: z.int().min(1).max(100_000).default(1_000),
  order: z.enum(["oldest", "newest"]).default("oldest"),
  /** The features that the date-paged list shows. The search shows all of them. */
  listFeatures: z.enum(["all", "waf"]).default("all"),
});
export type Switches = z.infer<typeof Switches>;
