import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import type { Searching } from "#operations/search/searching.ts";
import type { AdmissionQueue } from "./admission-queue.ts";

interface PlaceParts {
  readonly queries: Database;
  readonly files: ArchiveReader;
  readonly queue: AdmissionQueue;
  readonly isIngestBusy: () => Promise<boolean>;
}

/**
 * Returns a function that waits for a place without a connection, and gives the place back when the work has ended. While
 * ingest is busy, long work uses one process of the database only, because ingest needs the processors more.
 */
export function createRunInPlace({
  queries,
  files,
  queue,
  isIngestBusy,
}: PlaceParts): Searching["runInPlace"] {
  return async (request, work, run) => {
    const place = await queue.enter(request.caller?.keyId ?? "", work);
    try {
      const isBusy = work.kind === "long" && (await isIngestBusy());
      const reading = isBusy ? { ...queries, parallelWorkers: 0 } : queries;
      return await run({ queries: reading, files: files.inPlace(place) }, work.signal);
    } finally {
      place.leave();
    }
  };
}
