import { setTimeout as delay } from "node:timers/promises";
import { nextMessage, startChild, stopChild } from "../child.ts";
import { LAUNCH } from "../launch-options.ts";
import { listTree, readMemory } from "../process-tree.ts";
import type { ServedArchive } from "./archive-server.ts";
import { type DataSet, SEARCH_NOW } from "./data-set.ts";
import { ASKED_ZONE } from "./day-events.ts";
import type { Question } from "./questions.ts";

const AT_ONCE = 4;
const ROUNDS = 3;
const SAMPLE_MS = 50;

/** The most memory of the processes that answer, while four slow searches run at once; bytes. */
export interface AnsweringMemory {
  /** The service's process and DuckDB's. */
  readonly serviceBytes: number;
  /** Postgres's backends above what they took before. Its shared buffers are a setting of the benchmark. */
  readonly postgresBytes: number;
}

export async function timeMemory(set: DataSet, questions: readonly Question[]): Promise<AnsweringMemory> {
  const args = [set.postgres.url, set.folder, String(SEARCH_NOW), String(ASKED_ZONE)];
  const child = startChild("search/archive-server.ts", args, LAUNCH);
  try {
    const { url } = await nextMessage<ServedArchive>(child);
    const service = () => listTree(child.pid);
    const readPostgres = () => {
      const ours = new Set([process.pid, ...service()]);
      return readMemory(listTree().filter((pid) => !ours.has(pid)));
    };
    const before = readPostgres();
    const ask = async ({ search }: Question) => {
      const response = await fetch(`${url}/shield/event-logs/${ASKED_ZONE}/search`, {
        method: "POST",
        headers: { "content-type": "application/json", AccessKey: "bench" },
        body: JSON.stringify(search),
      });
      if (!response.ok) throw new Error(`search: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
    };
    let [serviceBytes, postgresBytes] = [0, 0];
    const state = { isRunning: true };
    const asked = (async () => {
      for (let round = 0; round < ROUNDS; round++) await Promise.all(questions.slice(0, AT_ONCE).map(ask));
      state.isRunning = false;
    })();
    while (state.isRunning) {
      serviceBytes = Math.max(serviceBytes, readMemory(service()));
      postgresBytes = Math.max(postgresBytes, readPostgres() - before);
      await Promise.race([asked, delay(SAMPLE_MS)]);
    }
    await asked;
    return { serviceBytes, postgresBytes };
  } finally {
    await stopChild(child);
  }
}
