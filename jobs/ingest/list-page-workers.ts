import { isDeepStrictEqual } from "node:util";
import { Worker } from "node:worker_threads";
import { ownMemory, toBuffer } from "#lib/own-memory.ts";
import type { ListPageSource } from "#stages/ingest/digest-list-page.ts";
import { findList } from "#stages/ingest/open-page.ts";
import type { PageAnswer, PageTask, SentDigest } from "./list-page-worker.ts";

/** A page of the list as it is stored, with its other facts. */
export type ListPageDigest = Omit<SentDigest, "envelope">;

/** Members that the answer must have, besides its entries, before its next page is requested. */
const NEEDED = ["hasMoreData", "continuationToken"];

/**
 * Digests a page's bytes and takes ownership of them. If the page has the form that the platform writes, the envelope
 * is returned at once, so that the next page can be requested meanwhile.
 */
export type DigestListPage = (
  body: Buffer,
  source: ListPageSource,
) => Promise<{ envelope: unknown; content: Promise<ListPageDigest> }>;

export interface ListPageWorkers {
  readonly digest: DigestListPage;
  close(): Promise<void>;
}

interface Waiting {
  resolve(digest: SentDigest): void;
  reject(error: unknown): void;
}

/**
 * Returns a pool of threads that parse, check, hash and serialise pages. That takes several microseconds per event,
 * too much for the thread that also talks to the platform and to Postgres. Threads start with the first page. A
 * thread that dies fails its pages and is replaced with the next page.
 */
export function createListPageWorkers({ threads }: { threads: number }): ListPageWorkers {
  const started: Thread[] = [];
  let nextId = 0;

  function pick(): Thread {
    const idle = started.find(({ waiting }) => waiting.size === 0);
    if (idle !== undefined) return idle;
    if (started.length < threads) {
      const thread = startThread(() => started.splice(started.indexOf(thread), 1));
      started.push(thread);
      return thread;
    }
    return started.reduce((a, b) => (b.waiting.size < a.waiting.size ? b : a));
  }

  async function send(body: Buffer, source: ListPageSource): Promise<SentDigest> {
    const { worker, waiting } = pick();
    const id = nextId++;
    const digested = new Promise<SentDigest>((resolve, reject) => waiting.set(id, { resolve, reject }));
    const task: PageTask = { id, body, source };
    worker.postMessage(task, ownMemory(body));
    return digested;
  }

  return {
    async digest(body, source) {
      const seen = findList(body, "logs", NEEDED)?.envelope;
      const sent = send(body, source);
      const envelope = seen ?? (await sent).envelope;
      return { envelope, content: sent.then((digest) => toContent(digest, envelope)) };
    },

    async close() {
      await Promise.all(started.map(({ worker }) => worker.terminate()));
    },
  };
}

interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
}

function startThread(onExit: () => void): Thread {
  const waiting = new Map<number, Waiting>();
  const worker = new Worker(new URL("./list-page-worker.ts", import.meta.url), {
    execArgv: [],
    // A page's garbage is short-lived, so a larger young generation would only use memory.
    resourceLimits: { maxYoungGenerationSizeMb: 12 },
  });
  worker.unref();
  const fail = (error: Error) => {
    for (const page of waiting.values()) page.reject(error);
    waiting.clear();
  };
  worker.on("message", ({ id, digest, error }: PageAnswer) => {
    const task = waiting.get(id);
    waiting.delete(id);
    if (digest === undefined) task?.reject(error);
    else task?.resolve(digest);
  });
  worker.on("error", (error) => fail(error as Error));
  worker.on("exit", (code) => {
    onExit();
    fail(new Error(`a page's thread ended with ${code}`));
  });
  return { worker, waiting };
}

/** @throws when the complete page differs from the envelope that was read from its ends. */
function toContent({ envelope: whole, ...digest }: SentDigest, envelope: unknown): ListPageDigest {
  if (!isDeepStrictEqual(whole, envelope)) throw new Error("a page of the list is not what its end promised");
  const { records } = digest;
  return {
    ...digest,
    hash: toBuffer(digest.hash),
    rows: toBuffer(digest.rows),
    idHashes: toBuffer(digest.idHashes),
    // Copied, because the memory of the records may be reused before these are stored.
    quarantined: digest.quarantined.map((entry) => ({ ...entry, raw: Buffer.from(entry.raw) })),
    records: { ...records, bytes: toBuffer(records.bytes), logIdHashes: toBuffer(records.logIdHashes) },
  };
}
