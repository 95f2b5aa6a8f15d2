/** What a backup contains, and how its progress and errors are shown. */
import { z } from "zod";
import { type Disposition, ServiceError } from "#lib/errors.ts";

/** Version of the container and of the manifest. A reader refuses a later one. */
export const BACKUP_FORMAT = 1;
export const MANIFEST = "manifest.json";
/** Holds the manifest's hash in the form that `sha256sum --check` reads. */
export const MANIFEST_HASH = "manifest.json.sha256";
/** Folder of the archive's files in the backup. */
export const ARCHIVE_FOLDER = "archive";

/**
 * Tables that are not in a backup: processes that ran when it was made, and sign-ins, which could have been ended since.
 */
export const LEFT_OUT = ["replicas", "sessions", "sign_in_tokens"];

const whole = z.int().nonnegative();
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const day = z.iso.date();

const Part = z.object({ member: z.string(), rows: whole, day: day.nullable() });
/** A file of the archive; `path` is relative to the archive and stays in it. */
const ArchiveFile = z.object({
  path: z
    .string()
    .regex(/^(?:events|records)\/zone=\d+\/day=\d{4}-\d\d-\d\d\/(?:[0-9a-f]{16}\.parquet|_statement\.json)$/),
  bytes: whole,
  sha256: hash,
});

/** The description of a backup. It is the last member but one: a backup without it is not complete. */
export const BackupManifest = z.object({
  format: z.literal(BACKUP_FORMAT),
  /** The version of Longwatch that made the backup. */
  version: z.string(),
  /** When the snapshot was taken, by the clock of the database. */
  takenAt: z.iso.datetime(),
  /** The server's version. */
  postgres: z.string(),
  /** Creation time of the last migration of the tables, epoch ms. */
  migration: whole,
  /** Fingerprint of the pseudonym key, which is not in the backup; null if there is none yet. */
  pseudonymKeyId: z.string().nullable(),
  leftOut: z.array(z.string()),
  /** Tables in the order in which they can be loaded. */
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()), parts: z.array(Part) })),
  sequences: z.array(
    z.object({ table: z.string(), column: z.string(), last: z.string(), isCalled: z.boolean() }),
  ),
  archive: z.object({
    /** Files and statements that are members of the backup, below `archive/`. */
    inside: z.array(ArchiveFile),
    /** Files that are in a bucket, damaged, or left out on request. */
    outside: z.array(ArchiveFile),
  }),
  /** Every other member with the hash of its content as it is in the backup. */
  members: z.array(z.object({ name: z.string(), bytes: whole, sha256: hash })),
});
export type BackupManifest = z.infer<typeof BackupManifest>;

/** Returns the number of rows of all tables. */
export function countRows({ tables }: Pick<BackupManifest, "tables">): number {
  return tables.flatMap(({ parts }) => parts).reduce((sum, { rows }) => sum + rows, 0);
}

/** Returns the number of files of the archive in the backup. Their days' statements are not counted. */
export function countArchiveFiles({ archive }: Pick<BackupManifest, "archive">): number {
  return archive.inside.filter(({ path }) => path.endsWith(".parquet")).length;
}

/** Thrown for a backup that cannot be made or restored. Its message is written for the operator. */
export class BackupError extends ServiceError {
  override readonly name = "BackupError";
  readonly code = "BACKUP";
  readonly disposition: Disposition = "give-up";
}

export type StepProgress = ReturnType<typeof createStepProgress>;

/**
 * Reports the progress of steps whose sizes are estimates: a step never counts for more than its size. `onProgress` gets a
 * share from 0 to 1, and is called again when the share has grown by a thousandth.
 */
export function createStepProgress(total: number, onProgress: (share: number, label: string) => void) {
  let ended = 0;
  let step = { label: "", size: 0, done: 0 };
  let shown = -1;
  const report = () => {
    const share = (ended + Math.min(step.done, step.size)) / Math.max(total, 1);
    const thousandths = Math.floor(share * 1_000);
    if (thousandths !== shown) onProgress(share, step.label);
    shown = thousandths;
  };
  return {
    begin(label: string, size: number): void {
      ended += step.size;
      step = { label, size, done: 0 };
      shown = -1;
      report();
    },
    advance(amount: number): void {
      step.done += amount;
      report();
    },
  };
}
