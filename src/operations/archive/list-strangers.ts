import type { ArchiveStorage, ListedFile } from "#model/archive-storage.ts";
import { STATEMENT_NAME } from "#stages/archive/files/day-statement.ts";

export interface Strangers {
  /** Archive files that nothing names. */
  readonly unnamed: readonly ListedFile[];
  /** All other files. Engines may read them as data. */
  readonly foreign: readonly ListedFile[];
}

const FILE = /^(?:events|records)\/zone=\d+\/day=\d{4}-\d\d-\d\d\/[0-9a-f]{16}\.parquet$/;
const STATEMENT = new RegExp(
  String.raw`^events/zone=\d+/day=\d{4}-\d\d-\d\d/${STATEMENT_NAME}(?:\.\d+\.tmp)?$`,
);

/** Returns the files that are not part of the archive, sorted by path. */
export async function listStrangers(
  storage: ArchiveStorage,
  isNamed: (names: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<Strangers> {
  const present = (await storage.list()).sort((one, other) => (one.path < other.path ? -1 : 1));
  const files = present.filter(({ path }) => FILE.test(path));
  const named = await isNamed(files.map(({ path }) => path));
  return {
    unnamed: files.filter(({ path }) => !named.has(path)),
    foreign: present.filter(({ path }) => !FILE.test(path) && !STATEMENT.test(path)),
  };
}
