import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, readdir } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { z } from "zod";
import { toError } from "#lib/errors.ts";
import { isAlive } from "#lib/process.ts";
import { toDay } from "#model/horizon.ts";
import { DeliveryError } from "../delivery-error.ts";
import { defineSink, toSingleLine } from "./sink.ts";

const FOLDER_RULE = "must be an absolute path";
const MEGABYTE = 1_000_000;
const HOST = os.hostname().replaceAll(/[^\w.]/g, "_");
/** Tells this process from an earlier one with the same number: the first process of a container always has the same. */
const RUN = randomBytes(4).toString("hex");

interface CurrentFile {
  readonly path: string;
  readonly day: string;
  /** Bytes of the acknowledged events. */
  size: number;
}

/**
 * Appends events to NDJSON files, a new one every UTC day and after `maxMegabytes`. An event is acknowledged when it is
 * on the disk. Every process writes files of its own, named by host and process, so replicas can share a folder. A process
 * that was killed may leave half a line: the next one on this host removes it, and the event is sent again.
 */
export const file = defineSink({
  kind: "file",
  acknowledgedWhen: "it is on the disk",
  settings: {
    folder: z.string(FOLDER_RULE).refine((folder) => path.isAbsolute(folder), FOLDER_RULE),
    maxMegabytes: z.int().min(1).max(100_000).default(100),
  },
  example: { folder: "/var/lib/longwatch/events" },
  open({ name, folder, maxMegabytes, clock }) {
    let current: CurrentFile | null = null;
    let isRepaired = false;

    async function write(lines: string, signal: AbortSignal): Promise<void> {
      signal.throwIfAborted();
      if (!isRepaired) await repairFiles(folder, name);
      isRepaired = true;
      const bytes = Buffer.from(lines);
      const nowMs = clock();
      const isFull = (current?.size ?? 0) + bytes.length > maxMegabytes * MEGABYTE;
      if (current === null || (isFull && current.size > 0) || current.day !== toDay(nowMs))
        current = await createFile(folder, name, nowMs);
      try {
        await appendAt(current, bytes);
      } catch (thrown) {
        // A person may have moved the file away.
        if (codeOf(thrown) === "ENOENT") current = null;
        throw thrown;
      }
      current.size += bytes.length;
    }

    let last: Promise<unknown> = Promise.resolve();
    return {
      count: null,
      async send(events, { signal }) {
        const lines = events.map(({ body }) => `${toSingleLine(body)}\n`).join("");
        // Zones are sent at the same time, and a file has one end.
        const written = last.then(() => write(lines, signal));
        last = written.catch(() => {});
        try {
          await written;
        } catch (thrown) {
          signal.throwIfAborted();
          throw toFailure(thrown);
        }
        return { refused: [], postponed: [], waitMs: null };
      },
    };
  },
});

async function createFile(folder: string, name: string, nowMs: number): Promise<CurrentFile> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const time = new Date(nowMs).toISOString().replaceAll(/[-:.]/g, "");
  const created = path.join(folder, `${name}-${time}-${HOST}-${process.pid}-${RUN}.ndjson`);
  await (await open(created, "wx", 0o600)).close();
  // Without this, a power failure could remove the file's name.
  await withFile(folder, "r", (handle) => handle.sync());
  return { path: created, day: toDay(nowMs), size: 0 };
}

function appendAt({ path, size }: CurrentFile, bytes: Buffer): Promise<void> {
  return withFile(path, "r+", async (handle) => {
    // Removes what a failed attempt left behind.
    await handle.truncate(size);
    const { bytesWritten } = await handle.write(bytes, 0, bytes.length, size);
    if (bytesWritten < bytes.length) throw new Error("the disk took only a part");
    await handle.sync();
  });
}

async function withFile(
  name: string,
  flags: string,
  use: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(name, flags);
  try {
    await use(handle);
  } finally {
    await handle.close();
  }
}

/** Removes half a line at the end of each file that a process of this host left behind. */
async function repairFiles(folder: string, name: string): Promise<void> {
  const written = new RegExp(`^${name}-\\d{8}T\\d{9}Z-(.+)-(\\d+)-([0-9a-f]{8})\\.ndjson$`);
  const names = await readdir(folder).catch(() => []);
  for (const one of names) {
    const [, host, pid, run] = written.exec(one) ?? [];
    if (host !== HOST || run === RUN || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    await withFile(path.join(folder, one), "r+", cutTornLine);
  }
}

async function cutTornLine(handle: FileHandle): Promise<void> {
  const chunk = Buffer.alloc(65_536);
  let end = (await handle.stat()).size;
  const whole = end;
  while (end > 0) {
    const from = Math.max(0, end - chunk.length);
    const { bytesRead } = await handle.read(chunk, 0, end - from, from);
    const lineEnd = chunk.subarray(0, bytesRead).lastIndexOf("\n");
    end = lineEnd < 0 ? from : from + lineEnd + 1;
    if (lineEnd >= 0) break;
  }
  if (end < whole) await handle.truncate(end);
}

function toFailure(thrown: unknown): DeliveryError {
  const text = `cannot write the file (${codeOf(thrown) ?? "incomplete"})`;
  return new DeliveryError({ code: "STREAM_FAILED", disposition: "retry", text });
}

function codeOf(thrown: unknown): string | undefined {
  return (toError(thrown) as NodeJS.ErrnoException).code;
}
