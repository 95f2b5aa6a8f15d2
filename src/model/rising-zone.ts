/** A zone that is polled more often, because something of it is near its threshold or has lately exceeded it. */
export interface RisingZone {
  readonly zoneId: number;
  /** Null if no recent hour was searched. */
  readonly searchedThroughMs: number | null;
  /** Stored events of the last two to three minutes: about what a search of the newest minutes reads. */
  readonly events: number;
}
