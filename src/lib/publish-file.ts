import { mkdir, open, rename, writeFile } from "node:fs/promises";
import path from "node:path";

/**
 * Moves a finished file to its name. Once it returns, the file is complete under its name even after a loss of power.
 * Both names must be on one disk.
 */
export async function publishFile(temporary: string, file: string): Promise<void> {
  await sync(temporary);
  await mkdir(path.dirname(file), { recursive: true });
  await rename(temporary, file);
  await sync(path.dirname(file));
}

/** Replaces a file's content: a reader sees the old or the new one, never a part. */
export async function replaceFile(file: string, content: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(temporary, content);
  await publishFile(temporary, file);
}

async function sync(name: string): Promise<void> {
  const handle = await open(name, "r").catch((thrown: NodeJS.ErrnoException) => {
    // Windows cannot open a folder.
    if (thrown.code === "EISDIR" || thrown.code === "EPERM") return null;
    throw thrown;
  });
  try {
    await handle?.sync().catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code !== "EPERM" && thrown.code !== "EINVAL") throw thrown;
    });
  } finally {
    await handle?.close();
  }
}
