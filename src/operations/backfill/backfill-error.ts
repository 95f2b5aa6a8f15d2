import { type Disposition, ServiceError } from "#lib/errors.ts";

/**
 * HELD: another process holds the lease. HEADER: the export lacks a column that identifies events. SHORT: the export or
 * a search ended early. CSV: the export is no CSV file. LOOPED: the list of a day cannot be read to its end.
 */
type BackfillErrorCode =
  | "BACKFILL_HELD"
  | "BACKFILL_HEADER"
  | "BACKFILL_SHORT"
  | "BACKFILL_CSV"
  | "BACKFILL_LOOPED";

/** Thrown if a backfill cannot continue. Its stored events stay, and a later backfill continues from there. */
export class BackfillError extends ServiceError {
  override readonly name = "BackfillError";
  readonly code: BackfillErrorCode;
  readonly disposition: Disposition;

  constructor(code: BackfillErrorCode, text: string) {
    super(text);
    this.code = code;
    this.disposition = code === "BACKFILL_HELD" || code === "BACKFILL_SHORT" ? "retry" : "give-up";
  }
}
