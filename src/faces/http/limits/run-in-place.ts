import type { FastifyRequest } from "fastify";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import type { SearchDeps } from "#operations/search/search-deps.ts";
import type { AdmissionQueue, Work } from "./admission-queue.ts";

interface PlaceParts {
  readonly archive: Database;
  readonly files: ArchiveReader;
  readonly queue: AdmissionQueue;
  readonly isIngestBusy: () => Promise<boolean>;
}

/**
 * Runs the work of a request once the admission queue has a place for it. Only `run` gets the means to read events from
 * Postgres and from files.
 * @throws as `AdmissionQueue.enter` does
 */
export type RunInPlace = <T>(
  request: Pick<FastifyRequest, "caller">,
  work: Work,
  run: (deps: SearchDeps) => Promise<T>,
) => Promise<T>;

/**
 * Returns a function that waits for a place without holding a connection, and returns the place when the work has
 * ended. While ingest is busy, long work uses only one database process, because ingest has priority on the processors.
 */
export function createRunInPlace({ archive, files, queue, isIngestBusy }: PlaceParts): RunInPlace {
  return async (request, work, run) => {
    const place = await queue.enter(request.caller?.keyId ?? "", work);
    try {
      const isBusy = work.kind === "long" && (await isIngestBusy());
      return await run({
        archive: isBusy ? { ...archive, parallelWorkers: 0 } : archive,
        files: files.inPlace(place),
      });
    } finally {
      place.leave();
    }
  };
}
