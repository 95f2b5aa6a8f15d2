import { type Disposition, ServiceError } from "#lib/errors.ts";

/** `ARCHIVE_UNREACHABLE`: the bucket is out of reach now. `ARCHIVE_TOO_LARGE`: the wanted files exceed the cache. */
type StorageErrorCode = "ARCHIVE_UNREACHABLE" | "ARCHIVE_TOO_LARGE";

/** Thrown when the archive's storage does not give or take a file. It says nothing about the file. */
export class StorageError extends ServiceError {
  override readonly name = "StorageError";
  readonly code: StorageErrorCode;
  readonly disposition: Disposition = "retry";
  /** The day of the wanted file, `yyyy-mm-dd`; null if it was not for a day. */
  readonly day: string | null;

  constructor(
    message: string,
    {
      code = "ARCHIVE_UNREACHABLE",
      day = null,
      cause,
    }: { code?: StorageErrorCode; day?: string | null; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.day = day;
  }
}
