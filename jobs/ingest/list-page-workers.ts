import { isDeepStrictEqual } from "node:util";
import { Worker } from "node:worker_threads";
import type { ListPageSource } from "../../src/ingest/digest-list-page.ts";
import { findList } from "../../src/ingest/open-page.ts";
import { ownMemory, toBuffer } from "../../src/lib/own-memory.ts";
import type { PageAnswer, PageTask, SentDigest } from "./list-page-worker.ts";

/** A page of the list as it is stored, and what else is to be known of it. */
export type ListPageDigest = Omit<SentDigest, "envelope">;

/** What the answer must say beside its entries before its next page is asked for. */
const NEEDED = ["hasMoreData", "continuationToken"];

/**
 * Digests a page's bytes, which are given away. The envelope comes at once where the page has the form the platform
 * writes, so that the next page can be asked for meanwhile.
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
 * Threads that parse, check, hash and write down pages: several microseconds an event, too many for the one thread that
 * also talks to the platform and to Postgres. Threads start with the first page; one that dies fails its pages and
 * is replaced with the next.
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
    // A page's garbage dies young: a larger nursery would only be memory.
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

/** @throws when the whole page says something else than its ends did. */
function toContent({ envelope: whole, ...digest }: SentDigest, envelope: unknown): ListPageDigest {
  if (!isDeepStrictEqual(whole, envelope)) throw new Error("a page of the list is not what its end promised");
  const { records } = digest;
  return {
    ...digest,
    hash: toBuffer(digest.hash),
    rows: toBuffer(digest.rows),
    idHashes: toBuffer(digest.idHashes),
    // Copies: the records may be given back while these are still to be stored.
    quarantined: digest.quarantined.map((entry) => ({ ...entry, raw: Buffer.from(entry.raw) })),
    records: { ...records, bytes: toBuffer(records.bytes), logIdHashes: toBuffer(records.logIdHashes) },
  };
}
