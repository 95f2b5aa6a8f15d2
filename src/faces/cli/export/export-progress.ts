import { many } from "#lib/format.ts";
import { drawBar, type ProgressLine, renderProgress } from "#lib/progress-bar.ts";
import { showTime } from "#lib/show-time.ts";
import { countUnfiltered } from "#operations/search/count-unfiltered.ts";
import type { SearchDeps } from "#operations/search/search-deps.ts";
import { createEventCounter } from "#stages/archive/csv/count-events.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";

interface ExportProgressOptions {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly form: "csv" | "json";
  /** Null if nothing may be drawn. */
  readonly line: Pick<ProgressLine, "update"> | null;
  /** Returns milliseconds of any origin. */
  readonly clock: () => number;
}

/**
 * Draws how many events an export has written. Without filters the stored counts tell how many it will write. With
 * filters nobody knows before the end, so the bar shows how much of the span was read.
 */
export function createExportProgress({ zoneId, plan, form, line, clock }: ExportProgressOptions) {
  const count = createEventCounter(form);
  const beganAt = clock();
  let reached = plan.to;
  let events = 0;
  let total: number | null = null;
  const draw = () => {
    if (total !== null) {
      const rate = (events * 1_000) / Math.max(clock() - beganAt, 1);
      return line?.update(renderProgress({ done: events, total, rate }));
    }
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
    async findTotal(deps: SearchDeps, signal: AbortSignal): Promise<void> {
      if (line === null || plan.clauses.length + plan.methodClauses.length > 0) return;
      total = await countUnfiltered(deps, zoneId, plan, signal).catch(() => null);
      draw();
    },
    async *watch(lines: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
      for await (const chunk of lines) {
        yield chunk;
        events = count(chunk);
        draw();
      }
    },
    events: () => events,
  };
}
