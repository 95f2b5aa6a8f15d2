import path from "node:path";
import { migrate } from "#db/migrate.ts";
import { nextMessage, startChild, stopChild } from "./child.ts";
import { BENCH_NOW } from "./ingest/history.ts";
import type { ServedPages } from "./ingest/page-server.ts";
import type { WalkCommand, WalkReport } from "./ingest/subject.ts";
import { LAUNCH } from "./launch-options.ts";
import type { ServedArchive } from "./search/archive-server.ts";
import { type DataSet, openDataSet, SEARCH_NOW } from "./search/data-set.ts";
import { ASKED_ZONE } from "./search/day-events.ts";
import { listQuestions, type Question } from "./search/questions.ts";
import { type LoadFigures, startLoad } from "./serve/load.ts";

export interface ServeBenchOptions {
  /** Events that are searched. */
  readonly events: number;
  /** Events that are ingested in each turn. */
  readonly ingested: number;
  readonly connections: number;
  readonly repeats: number;
  readonly keep: string;
  readonly onProgress: (done: number, what: string) => void;
}

/** Ingest by itself and while the slowest of the questions is asked without a pause. */
export interface ServeBenchResult {
  readonly question: string;
  /** Events per second, repeat by repeat. */
  readonly alone: readonly number[];
  readonly loaded: readonly number[];
  readonly load: readonly LoadFigures[];
}

const SESSIONS = 3;
const INGEST_DATABASE = "bench_ingest";

/** Ingest writes to another database than the searched one, on the same server, disk and cores. */
export async function benchServe(options: ServeBenchOptions): Promise<ServeBenchResult> {
  const folder = path.join(options.keep, `events-${options.events}`);
  const set = await openDataSet({ ...options, folder, isKept: true });
  const pages = startChild("ingest/page-server.ts", [String(SESSIONS), String(options.ingested)]);
  const archive = startChild(
    "search/archive-server.ts",
    [set.postgres.url, set.folder, String(SEARCH_NOW), String(ASKED_ZONE)],
    LAUNCH,
  );
  try {
    const [served, { url }] = await Promise.all([
      nextMessage<ServedPages>(pages),
      nextMessage<ServedArchive>(archive),
    ]);
    return await takeTurns(set, served, `${url}/shield/event-logs/${ASKED_ZONE}/search`, options);
  } finally {
    await stopChild(pages);
    await stopChild(archive);
    await dropIngestDatabase(set);
    await set.close();
  }
}

async function takeTurns(
  set: DataSet,
  served: ServedPages,
  url: string,
  { repeats, connections, onProgress }: ServeBenchOptions,
): Promise<ServeBenchResult> {
  const question = await findSlowest(url);
  const alone: number[] = [];
  const loaded: number[] = [];
  const figures: LoadFigures[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    onProgress((2 * repeat) / (2 * repeats), "ingest alone");
    alone.push(await ingest(set, served));
    onProgress((2 * repeat + 1) / (2 * repeats), `ingest while asked: ${question.name}`);
    const load = startLoad({ url, body: question.search, connections });
    loaded.push(await ingest(set, served));
    figures.push(await load.stop());
  }
  return { question: question.name, alone, loaded, load: figures };
}

async function findSlowest(url: string): Promise<Question> {
  let slowest: { question: Question; ms: number } | undefined;
  for (const question of listQuestions("203.0.113.9")) {
    let ms = 0;
    for (let turn = 0; turn < 2; turn++) {
      const startedAt = performance.now();
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", AccessKey: "bench" },
        body: JSON.stringify(question.search),
      });
      const answer = await response.text();
      if (!response.ok) throw new Error(`${question.name}: ${response.status} ${answer}`);
      ms = performance.now() - startedAt;
    }
    if (slowest === undefined || ms > slowest.ms) slowest = { question, ms };
  }
  if (slowest === undefined) throw new Error("no questions");
  return slowest.question;
}

/** Events per second of a new process into an empty database. */
async function ingest(set: DataSet, served: ServedPages): Promise<number> {
  await dropIngestDatabase(set);
  await set.postgres.database.pool.query(`create database ${INGEST_DATABASE}`);
  const databaseUrl = Object.assign(new URL(set.postgres.url), { pathname: `/${INGEST_DATABASE}` }).href;
  await migrate({ url: databaseUrl });
  const child = startChild("ingest/subject.ts", [], LAUNCH);
  try {
    await nextMessage(child);
    const command: WalkCommand = {
      kind: "walk",
      databaseUrl,
      zones: served.zones,
      now: BENCH_NOW,
      platformUrl: served.url,
    };
    child.send(command);
    const { inserted, quarantined, ms } = await nextMessage<WalkReport>(child);
    if (inserted + quarantined !== served.events) {
      throw new Error(`${inserted} events stored where ${served.events} were expected`);
    }
    return (served.events / ms) * 1_000;
  } finally {
    await stopChild(child);
  }
}

async function dropIngestDatabase({ postgres }: DataSet): Promise<void> {
  await postgres.database.pool.query(`drop database if exists ${INGEST_DATABASE} with (force)`);
}
