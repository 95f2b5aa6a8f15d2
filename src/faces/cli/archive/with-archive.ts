import { createArchiveStore, createStorage } from "#app/open-archive-store.ts";
import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { withStore } from "../store/open-store.ts";
import { untilStopped } from "../store/stop-signal.ts";
import type { StoreIo } from "../store/store-command.ts";

export interface ArchiveCommandParts {
  readonly archive: ArchiveStore;
  /** Draws the progress line; `share` is from 0 to 1. */
  readonly onProgress: (share: number, label: string) => void;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Runs `fn` with the archive of this storage, a progress line, and a signal for Ctrl-C. */
export async function withStorage<T>(
  io: StoreIo,
  storage: ArchiveStorage,
  fn: (parts: ArchiveCommandParts) => Promise<T>,
): Promise<T> {
  const line = createProgressLine(io.stderr);
  const archive = createArchiveStore(storage);
  const onProgress = (share: number, label: string) => line.update(`${drawBar(share)}  ${label}`);
  try {
    return await untilStopped(io, (signal) => fn({ archive, signal, onProgress }));
  } finally {
    line.clear();
    await archive.duckdb.close();
  }
}

/** The same with the service's database. */
export function withArchive<T>(
  io: StoreIo,
  config: Config,
  fn: (parts: ArchiveCommandParts & { readonly database: Database }) => Promise<T>,
): Promise<T> {
  return withStore(config, (database) =>
    withStorage(io, createStorage(config.archive, database.db), (parts) => fn({ ...parts, database })),
  );
}

/** Returns the configured zones; null where the service takes them from elsewhere, as the demo does. */
export function knownZones({ edge: { zones } }: Config): readonly number[] | null {
  return zones.length === 0 ? null : zones;
}
