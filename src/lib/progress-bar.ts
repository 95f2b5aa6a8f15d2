import { formatWhole } from "./format.ts";

/** Progress of a long operation. */
export interface Progress {
  readonly done: number;
  /** May turn out to be too low. The bar then stays just short of its end. */
  readonly total: number;
  /** Recent items per second. */
  readonly rate: number;
}

const WIDTH = 20;

/**
 * Returns a line that fits a terminal of 80 columns: `████░░░  52 %  124,312 of 238,860 events  11,240/s  10 s left`.
 */
export function renderProgress({ done, total, rate }: Progress): string {
  const bar = drawBar(total <= 0 ? 0 : done / total);
  const counted = `${formatWhole(done)} of ${formatWhole(Math.max(total, done))} events`;
  // A standby that was promoted may have fewer events than the former primary.
  const speed = `${formatWhole(Math.max(0, rate))}/s`;
  const left = remaining(total - done, rate);
  return [bar, counted, speed, ...(total > 0 && left !== "" ? [left] : [])].join("  ");
}

/** Returns the bar alone, always just short of its end. */
export function drawBar(share: number): string {
  const shown = Math.min(share, 0.999);
  const filled = Math.floor(shown * WIDTH);
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)}  ${String(Math.floor(shown * 100)).padStart(3)} %`;
}

function remaining(left: number, rate: number): string {
  if (rate <= 0) return "";
  const seconds = Math.ceil(Math.max(0, left) / rate);
  return seconds < 90 ? `${seconds} s left` : `${Math.ceil(seconds / 60)} min left`;
}

const PRINT_EVERY_MS = 5_000;

interface ProgressStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Width of the terminal, which may change while the line is drawn. */
  readonly columns?: number;
}

export type ProgressLine = ReturnType<typeof createProgressLine>;

/**
 * Returns a line that is redrawn in place on a terminal. Elsewhere it prints a line every few seconds, for logs, so
 * that short work prints none. `clear` removes the line so that other output can be printed. `above` does so during
 * `print`, for other output to the same terminal.
 */
export function createProgressLine(stream: ProgressStream, now: () => number = Date.now) {
  let printedAt = now();
  let shown = "";
  const isTTY = stream.isTTY === true;
  // A line that wraps could not be redrawn. Some terminals wrap in the last column already.
  const draw = () => stream.write(`\r${shown.slice(0, Math.max(0, (stream.columns || 80) - 1))}\u001b[K`);
  const wipe = () => stream.write("\r\u001b[K");
  return {
    update(text: string): void {
      if (isTTY) {
        shown = text;
        draw();
      } else if (now() - printedAt >= PRINT_EVERY_MS) {
        stream.write(`${text}\n`);
        printedAt = now();
      }
    },
    above<T>(print: () => T): T {
      if (shown === "") return print();
      wipe();
      const printed = print();
      draw();
      return printed;
    },
    clear(): void {
      shown = "";
      if (isTTY) wipe();
    },
  };
}
