import type { Dimension } from "../query/search.ts";

/** An event as its columns have it; what is not known is ''. */
export interface ArchivedEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly fields: Readonly<Record<Dimension, string>>;
  readonly message: string;
}
