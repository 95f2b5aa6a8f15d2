import type { Dimension } from "../query/search.ts";

/** An event with the values of its columns. An unknown value is ''. */
export interface ArchivedEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly fields: Readonly<Record<Dimension, string>>;
  readonly message: string;
}
