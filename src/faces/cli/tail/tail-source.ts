import type { ArchivedEvent } from "#model/waf-event.ts";
import type { ReadOnward } from "./follow-events.ts";

/** An open source of events. */
interface TailReads {
  readonly readOnward: ReadOnward<ArchivedEvent>;
  readonly listZones: () => Promise<readonly number[]>;
}

/** The database, or a service elsewhere. */
export interface TailSource {
  readonly name: "database" | "service";
  /** Milliseconds between two polls of so many zones. */
  readonly pauseMs: (zones: number) => number;
  /** Opens the source for `work`, which ends when `signal` aborts. */
  readonly open: (signal: AbortSignal, work: (reads: TailReads) => Promise<void>) => Promise<void>;
}
