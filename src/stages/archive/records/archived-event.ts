import type { Dimension } from "#model/kinds.ts";

/** An event with the values of its columns. An unknown value is ''. */
export interface ArchivedEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  /** Whether it was copied from the list or from a search. */
  readonly route: string;
  readonly fields: Readonly<Record<Dimension, string>>;
  readonly message: string;
  /** Facts of its request, for events without a record. */
  readonly method: string;
  readonly requestId: string;
}
