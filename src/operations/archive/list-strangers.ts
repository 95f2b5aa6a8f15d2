import { readdir } from "node:fs/promises";
import path from "node:path";
import { STATEMENT_NAME } from "../../archive/files/day-statement.ts";

export interface Strangers {
  /** Names of archive files that nothing names. */
  readonly unnamed: readonly string[];
  /** All other files. Engines that read the folder may read them as data. */
  readonly foreign: readonly string[];
}

const FILE = /^(?:events|records)\/zone=\d+\/day=\d{4}-\d\d-\d\d\/[0-9a-f]{16}\.parquet$/;
const STATEMENT = new RegExp(
  String.raw`^events/zone=\d+/day=\d{4}-\d\d-\d\d/${STATEMENT_NAME}(?:\.\d+\.tmp)?$`,
);

/** Returns the files in the archive folder that are not part of the archive, sorted. `isNamed` takes paths in the folder. */
export async function listStrangers(
  folder: string,
  isNamed: (names: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<Strangers> {
  const names: string[] = [];
  for (const kind of ["events", "records"]) {
    const found = await readdir(path.join(folder, kind), { recursive: true, withFileTypes: true }).catch(
      () => [],
    );
    for (const entry of found)
      if (!entry.isDirectory())
        names.push(path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join("/"));
  }
  const files = names.filter((name) => FILE.test(name)).sort();
  const named = await isNamed(files);
  return {
    unnamed: files.filter((name) => !named.has(name)),
    foreign: names.filter((name) => !FILE.test(name) && !STATEMENT.test(name)).sort(),
  };
}
