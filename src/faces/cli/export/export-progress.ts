import { many, showTime } from "#lib/format.ts";
import { drawBar, type ProgressLine, renderProgress } from "#lib/progress-bar.ts";
import { createEventCounter } from "#stages/archive/csv/count-events.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";

interface ExportProgressOptions {
  readonly plan: Pick<SearchPlan, "from" | "to" | "clauses" | "methodClauses">;
  /** A CSV begins with a header. */
  readonly form: "csv" | "json";
  /** Null if nothing may be drawn. */
  readonly line: Pick<ProgressLine, "update"> | null;
  /** Returns milliseconds of any origin. */
  readonly clock: () => number;
}

/**
 * Draws how many events an export has written. Without filters the stored counts tell how many it will write. With
 * filters nobody knows before the end, so the bar shows how much of the span was read, where that is known.
 */
export function createExportProgress({ plan, form, line, clock }: ExportProgressOptions) {
  const countLines = createEventCounter(form);
  const headers = form === "csv" ? 1 : 0;
  const beganAt = clock();
  let reached: number | null = null;
  let events = 0;
  let total: number | null = null;
  const draw = () => {
    if (total !== null) {
      const rate = (events * 1_000) / Math.max(clock() - beganAt, 1);
      return line?.update(renderProgress({ done: events, total, rate }));
    }
    if (reached === null) return line?.update(many(events, "event"));
    const share = (plan.to - reached) / (plan.to - plan.from);
    const at = showTime(reached - (reached % 60_000));
    line?.update(`${drawBar(share)}  ${many(events, "event")}  back to ${at}`);
  };
  return {
    onReached: (from: number): void => {
      reached = from;
      draw();
    },
    /** Looks up the total while the export runs. Without it, the export goes on. */
    async findTotal(countUnfiltered: () => Promise<number>): Promise<void> {
      if (line === null || plan.clauses.length + plan.methodClauses.length > 0) return;
      total = await countUnfiltered().catch(() => null);
      draw();
    },
    async *watch(text: AsyncIterable<Buffer | string>): AsyncGenerator<Buffer, void, undefined> {
      for await (const chunk of text) {
        const bytes = Buffer.from(chunk);
        yield bytes;
        events = Math.max(0, countLines(bytes) - headers);
        draw();
      }
    },
    events: () => events,
  };
}
