import { chmodSync, type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import path from "node:path";

/** The rights of everybody but the owner. */
const OTHERS = 0o077;
/** Lets the group enter a folder whose names it knows: Postgres, where another user runs it. */
const GROUP_ENTERS = 0o010;

export interface LooseEntry {
  readonly path: string;
  readonly mode: number;
}

/**
 * Yields the entries of a folder that others than their owner may use, the folder itself last. Links are not followed, and
 * what is below the names in `except` is left out.
 */
export function* listLoose(folder: string, except: readonly string[] = []): Generator<LooseEntry> {
  for (const entry of readEntries(folder)) {
    const name = path.join(folder, entry.name);
    if (except.includes(entry.name) || entry.isSymbolicLink()) continue;
    if (entry.isDirectory()) yield* listLoose(name);
    else yield* looseEntry(name);
  }
  yield* looseEntry(folder);
}

/** Nothing for a folder that was removed meanwhile. */
function readEntries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw thrown;
  }
}

function* looseEntry(name: string): Generator<LooseEntry> {
  const found: Stats | undefined = lstatSync(name, { throwIfNoEntry: false });
  const allowed = found?.isDirectory() === true ? GROUP_ENTERS : 0;
  if (found !== undefined && (found.mode & OTHERS & ~allowed) !== 0)
    yield { path: name, mode: found.mode & 0o777 };
}

/**
 * Takes away the rights of others, and returns the entries where it could not, because another user owns them. An
 * interrupted call is repeated by the next one.
 */
export function makePrivate(folder: string, except: readonly string[] = []): LooseEntry[] {
  return [...listLoose(folder, except)].filter(({ path: name, mode }) => {
    try {
      chmodSync(name, mode & ~OTHERS);
      return false;
    } catch (thrown) {
      return (thrown as NodeJS.ErrnoException).code !== "ENOENT";
    }
  });
}
