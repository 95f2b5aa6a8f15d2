/** One stored page, for metrics and progress. */
export interface StoredPageFacts {
  readonly route: "search" | "list";
  readonly zoneId: number;
  readonly entries: number;
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
  readonly bytes: number;
}

export interface IngestObserver {
  pageStored(facts: StoredPageFacts): void;
}
