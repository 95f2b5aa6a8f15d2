/**
 * A thread that digests pages of the date-paged list. It may get several tasks at once. It answers each with the
 * digest, or with the error if digesting fails.
 */
import { parentPort } from "node:worker_threads";
import { toEventRows } from "#db/ingest/event-rows.ts";
import { ownMemory, toBuffer } from "#lib/own-memory.ts";
import { digestListPage, type ListPageSource } from "#stages/ingest/digest-list-page.ts";

export interface PageTask {
  readonly id: number;
  readonly body: Uint8Array;
  readonly source: ListPageSource;
}

function digest({ body, source }: PageTask) {
  const { events, ...page } = digestListPage(toBuffer(body), source);
  return { ...page, size: events.length, rows: toEventRows(source.zoneId, events) };
}

/** A digest as it is sent: structured cloning turns every Buffer into a Uint8Array. */
export type SentDigest = ReturnType<typeof digest>;

export type PageAnswer =
  | { readonly id: number; readonly digest: SentDigest; readonly error?: undefined }
  | { readonly id: number; readonly digest?: undefined; readonly error: unknown };

parentPort?.on("message", (task: PageTask) => {
  let answer: PageAnswer;
  try {
    answer = { id: task.id, digest: digest(task) };
  } catch (error) {
    answer = { id: task.id, error };
  }
  const { rows, records, idHashes } = answer.digest ?? {};
  parentPort?.postMessage(answer, ownMemory(rows, records?.bytes, records?.logIdHashes, idHashes));
});
