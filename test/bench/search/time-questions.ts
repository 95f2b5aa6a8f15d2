import { isDeepStrictEqual } from "node:util";
import type { SearchDeps } from "#archive/search/searching.ts";
import { listTree, readCpuMs } from "../process-tree.ts";
import { askArchive } from "./ask-archive.ts";
import type { DataSet } from "./data-set.ts";
import { ASKED_ZONE } from "./day-events.ts";
import { askDuck, type DuckForm, listForms } from "./duck-answers.ts";
import type { Question } from "./questions.ts";

/** The time that a question took, in ms, repeat by repeat, and the CPU time of all processes, in ms per repeat. */
export interface TimedQuestion {
  readonly question: Question;
  readonly archiveMs: readonly number[];
  readonly duckMs: readonly number[];
  readonly archiveCpuMs: number;
  readonly duckCpuMs: number;
  readonly total: number;
}

interface Contestants {
  readonly question: Question;
  readonly form: DuckForm;
  readonly total: number;
  readonly archiveMs: number[];
  readonly duckMs: number[];
  archiveCpuMs: number;
  duckCpuMs: number;
}

/**
 * Asks both sides every question, in turn, as often as `repeats` says. Before that, unmeasured: both answers must be
 * the same, and DuckDB's fastest way to put the question is found, so that it gets no worse SQL than ours.
 * @throws {Error} where the answers differ.
 */
export async function timeQuestions(
  set: DataSet,
  questions: readonly Question[],
  { repeats, onProgress }: { repeats: number; onProgress: (done: number, what: string) => void },
): Promise<TimedQuestion[]> {
  const deps = toDeps(set);
  const turns = questions.length * (repeats + 1);
  let done = 0;
  const contestants: Contestants[] = [];
  for (const question of questions) {
    onProgress(done++ / turns, `checking: ${question.name}`);
    contestants.push({
      question,
      archiveMs: [],
      duckMs: [],
      archiveCpuMs: 0,
      duckCpuMs: 0,
      ...(await meet(set, question)),
    });
  }
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const contestant of contestants) {
      const { question, form, archiveMs, duckMs } = contestant;
      onProgress(done++ / turns, `repeat ${repeat + 1} of ${repeats}: ${question.name}`);
      const askOurs = async () => {
        const { ms, cpuMs } = await clock(() => askArchive(deps, ASKED_ZONE, question.search));
        archiveMs.push(ms);
        contestant.archiveCpuMs += cpuMs / repeats;
      };
      const askTheirs = async () => {
        const { ms, cpuMs } = await clock(() => askDuck(set.duck, ASKED_ZONE, question.search, form));
        duckMs.push(ms);
        contestant.duckCpuMs += cpuMs / repeats;
      };
      for (const ask of repeat % 2 === 0 ? [askOurs, askTheirs] : [askTheirs, askOurs]) await ask();
    }
  }
  return contestants;
}

async function meet(set: DataSet, { name, search }: Question) {
  const deps = toDeps(set);
  const answer = await askArchive(deps, ASKED_ZONE, search);
  let best: { ms: number; form: DuckForm } | undefined;
  for (const form of listForms(search)) {
    const theirs = await askDuck(set.duck, ASKED_ZONE, search, form);
    if (!isDeepStrictEqual(theirs, answer)) {
      throw new Error(
        `${name}: the answers differ\n${JSON.stringify(answer).slice(0, 1_000)}\n${JSON.stringify(theirs).slice(0, 1_000)}`,
      );
    }
    const times = [];
    for (let turn = 0; turn < 2; turn++)
      times.push((await clock(() => askDuck(set.duck, ASKED_ZONE, search, form))).ms);
    const ms = Math.min(...times);
    if (best === undefined || ms < best.ms) best = { ms, form };
  }
  await askArchive(deps, ASKED_ZONE, search);
  if (best === undefined) throw new Error(`${name}: no way to ask DuckDB`);
  return { form: best.form, total: answer.total };
}

function toDeps({ postgres, archive }: DataSet): SearchDeps {
  return { queries: postgres.database, files: archive.files };
}

/** The CPU time is that of this process and of all that it started: DuckDB's and Postgres's. */
async function clock(work: () => Promise<unknown>): Promise<{ ms: number; cpuMs: number }> {
  const cpuBefore = readCpuMs(listTree());
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  return { ms, cpuMs: readCpuMs(listTree()) - cpuBefore };
}
