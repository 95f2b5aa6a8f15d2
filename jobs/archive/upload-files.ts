import { readFile } from "node:fs/promises";
import { listNotUploaded, markUploaded } from "#db/archive/archive-files.ts";
import { ArchiveDamagedError, bringFile, locateFile } from "#db/archive/bring-file.ts";
import type { Queryable } from "#db/client.ts";
import { toError } from "#lib/errors.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { statementPath } from "#stages/archive/files/day-statement.ts";

export interface UploadFilesDeps {
  readonly db: Queryable;
  readonly storage: ArchiveStorage;
  readonly log: Record<"error" | "info", (facts: object, event: string) => unknown>;
}

/**
 * Puts the files into the bucket that were written before there was one, oldest day first, with their statements. They
 * stay in the folder until they are there. A damaged file does not keep the others waiting.
 */
export async function uploadFiles({ db, storage, log }: UploadFilesDeps, signal: AbortSignal): Promise<void> {
  let files = 0;
  for (const file of await listNotUploaded(db)) {
    signal.throwIfAborted();
    try {
      const local = await bringFile(storage, file, signal);
      await storage.put(local, file.path, file, signal);
      const statement = statementPath(file.zoneId, file.day);
      const text = await readFile(locateFile(storage, { path: statement }), "utf8").catch(() => null);
      if (text !== null) await storage.writeText(statement, text);
      await markUploaded(db, file);
      files++;
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof ArchiveDamagedError)) throw thrown;
      log.error({ err: toError(thrown) }, "archive file not uploaded");
    }
  }
  if (files > 0) log.info({ files }, "archive files uploaded");
}
