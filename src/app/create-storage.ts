import { openBucket } from "#adapters/storage/bucket.ts";
import { createBucketStorage } from "#adapters/storage/bucket-storage.ts";
import { createFolderStorage } from "#adapters/storage/folder-storage.ts";
import type { Config } from "#config/config.ts";
import { listNotUploaded } from "#db/archive/archive-files.ts";
import type { Queryable } from "#db/client.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";

/** Returns the archive's folder, or its bucket with the folder as cache. It does not connect yet. */
export function createStorage({ folder, bucket }: Config["archive"], db: Queryable): ArchiveStorage {
  if (bucket === null) return createFolderStorage(folder);
  return createBucketStorage({
    bucket: openBucket(bucket),
    folder,
    cacheBytes: bucket.cacheBytes,
    listNotUploaded: async () => new Set((await listNotUploaded(db)).map(({ path }) => path)),
  });
}
