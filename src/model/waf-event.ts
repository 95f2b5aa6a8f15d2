import type { EventRoute } from "./kinds.ts";
import type { FactColumns } from "./request-facts.ts";

/**
 * One WAF event as it is stored. In every nullable text, null means "this route cannot know" and '' means "known to be
 * empty". A merge fills only nulls. No text contains a NUL, which Postgres cannot store, and each is cut to a limit.
 * The record as received is stored elsewhere.
 */
export interface WafEvent extends FactColumns {
  /** Epoch milliseconds by the platform's clock. */
  readonly occurredAt: number;
  readonly logId: string;
  readonly route: EventRoute;
  readonly feature: string | null;
  readonly ruleId: string | null;
  /** May be masked (`203.0.113.*`). */
  readonly ip: string | null;
  readonly ja4: string | null;
  readonly ua: string | null;
  readonly url: string | null;
  readonly asn: string | null;
  readonly country: string | null;
  /** The search language's verb: `block`, `log`, `challenge`, ... An unknown word is stored unchanged. */
  readonly action: string | null;
  readonly message: string | null;
}

/** An event whose facts were not read. */
export type EventWithoutFacts = Omit<WafEvent, keyof FactColumns>;
