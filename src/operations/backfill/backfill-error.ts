import { type Disposition, ServiceError } from "../../lib/errors.ts";

/**
 * HELD: another process reads the same. HEADER: the export does not name the columns that tell events apart. SHORT: it
 * ended before it had shown everything. CSV: it is no CSV file. LOOPED: a day's list does not lead to its end.
 */
type BackfillErrorCode =
  | "BACKFILL_HELD"
  | "BACKFILL_HEADER"
  | "BACKFILL_SHORT"
  | "BACKFILL_CSV"
  | "BACKFILL_LOOPED";

/** A backfill that cannot go on; what it stored so far stays and is gone on from. */
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
