import { ServiceError } from "../../src/lib/errors.ts";

/** Thrown when a file of the archive is missing or is not what the manifest says. */
export class ArchiveDamagedError extends ServiceError {
  override readonly name = "ArchiveDamagedError";
  readonly code = "ARCHIVE_DAMAGED";
  readonly disposition = "give-up";
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  /** Relative to the archive folder. */
  readonly path: string;

  constructor({ day, path }: { readonly day: string; readonly path: string }, problem: string) {
    super(`the archive file ${path} of ${day} ${problem}`);
    this.day = day;
    this.path = path;
  }
}
