import { type Disposition, ServiceError } from "#lib/errors.ts";

/** Thrown when a written file is not what it should be. Nothing was published; the day stays as it was. */
export class ArchiveMismatchError extends ServiceError {
  override readonly name = "ArchiveMismatchError";
  readonly code = "ARCHIVE_MISMATCH";
  readonly disposition: Disposition = "give-up";
}
