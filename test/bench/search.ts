import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type DataSet, openDataSet } from "./search/data-set.ts";
import { ASKED_ZONE } from "./search/day-events.ts";
import { listQuestions } from "./search/questions.ts";
import { type ArchiveFigures, readArchiveFigures } from "./search/read-archive-figures.ts";
import { type TimedExport, type TimedFind, timeExport, timeFinds } from "./search/time-http.ts";
import { type AnsweringMemory, timeMemory } from "./search/time-memory.ts";
import { type TimedQuestion, timeQuestions } from "./search/time-questions.ts";

export interface SearchBenchOptions {
  /** Sizes of the data sets, each measured by itself. */
  readonly events: readonly number[];
  readonly repeats: number;
  /** Where data sets stay for the next run; null to make them anew and remove them. */
  readonly keep: string | null;
  /** Called with the progress of a step, 0 to 1. */
  readonly onProgress: (done: number, what: string) => void;
}

/** An export takes a tenth of a second, and the first ones run code that is not compiled yet. */
const FEWEST_EXPORTS = 20;

/** The results for one data set. */
export interface SearchBenchResult {
  readonly events: number;
  readonly questions: readonly TimedQuestion[];
  readonly archived: ArchiveFigures;
  readonly memory: AnsweringMemory;
  readonly exported: TimedExport;
  readonly finds: readonly TimedFind[];
}

/** The questions over every data set, one after the other. */
export async function benchSearch(options: SearchBenchOptions): Promise<SearchBenchResult[]> {
  const results: SearchBenchResult[] = [];
  for (const events of options.events) results.push(await benchDataSet(events, options));
  return results;
}

async function benchDataSet(events: number, options: SearchBenchOptions): Promise<SearchBenchResult> {
  const { keep, repeats } = options;
  const say = (done: number, what: string) => options.onProgress(done, `${events} events, ${what}`);
  const folder =
    keep === null
      ? mkdtempSync(path.join(tmpdir(), "longwatch-bench-"))
      : path.join(keep, `events-${events}`);
  const set = await openDataSet({ events, folder, isKept: keep !== null, onProgress: say });
  try {
    const questions = listQuestions(await pickAddress(set));
    const timed = await timeQuestions(set, questions, { repeats, onProgress: say });
    const slowest = timed.toSorted((one, other) => other.archiveCpuMs - one.archiveCpuMs);
    return {
      events,
      questions: timed,
      archived: await readArchiveFigures(set),
      memory: await timeMemory(
        set,
        slowest.map(({ question }) => question),
      ),
      exported: await timeExport(set, { repeats: Math.max(repeats, FEWEST_EXPORTS), onProgress: say }),
      finds: await timeFinds(set, { repeats, onProgress: say }),
    };
  } finally {
    await set.close();
  }
}

/** One of the busiest few thousand: an address with some traffic on most days. */
async function pickAddress({ duck }: DataSet): Promise<string> {
  const [row] = await duck.query(`
    select ip from waf_events where zone_id = ${ASKED_ZONE} and ip like '%.%'
    group by ip order by count(*) desc, ip limit 1 offset 3000`);
  return String(row?.["ip"]);
}
