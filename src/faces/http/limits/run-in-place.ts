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
 * Runs the work of a request once the admission queue has a place for it. Events in Postgres and in files can be read only
 * there, because only there `run` gets the means. @throws as `AdmissionQueue.enter` does.
 */
export type RunInPlace = <T>(
  request: Pick<FastifyRequest, "caller">,
  work: Work,
  run: (deps: SearchDeps) => Promise<T>,
) => Promise<T>;

/**
 * Returns a function that waits for a place without a connection, and gives the place back when the work has ended. While
 * ingest is busy, long work uses one process of the database only, because ingest needs the processors more.
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
