import type { EventRoute } from "#model/kinds.ts";
/** One stored page, for metrics and progress. */
export interface StoredPageFacts {
  readonly route: EventRoute;
  readonly zoneId: number;
  readonly entries: number;
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
  /** Events held back for the first time, because the pseudonym key is missing. */
  readonly held: number;
  readonly bytes: number;
  /** Duration of the transaction that stored the page. */
  readonly commitMs: number;
}

export interface IngestObserver {
  pageStored(facts: StoredPageFacts): void;
}
