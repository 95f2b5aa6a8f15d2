/** Knowledge about an hour of a zone, without its events. Hours and minutes are numbered since the epoch. */
export interface CopiedHour {
  readonly hour: number;
  /** The platform has forgotten the hour. */
  readonly isGap: boolean;
  /** Sealed, or searched to its end. */
  readonly isCopied: boolean;
  /** Whether every minute was judged with all events that are stored. */
  readonly isJudged: boolean;
  readonly events: number;
  readonly isSearched: boolean;
  /** When the hour last gained an event, epoch ms. */
  readonly lastNewAt: number | null;
  /** The minutes that the detector of rules has judged, [from, through); null if none. */
  readonly rulesFrom: number | null;
  readonly rulesThrough: number | null;
}
