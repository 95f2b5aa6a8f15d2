/** Identifies one event of a zone. */
export interface EventKey {
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly logId: string;
}
