/** How far a long piece of work is. */
export interface Progress {
  readonly done: number;
  /** May turn out to be too low; the bar then stays just short of its end. */
  readonly total: number;
  /** Per second, lately. */
  readonly rate: number;
}

const WIDTH = 20;

/** Fits a terminal of 80 columns: `████░░░  52 %  124,312 of 238,860 events  11,240/s  10 s left`. */
export function renderProgress({ done, total, rate }: Progress): string {
  const bar = drawBar(total <= 0 ? 0 : done / total);
  const counted = `${count(done)} of ${count(Math.max(total, done))} events`;
  const speed = `${count(rate)}/s`;
  const left = remaining(total - done, rate);
  return [bar, counted, speed, ...(total > 0 && left !== "" ? [left] : [])].join("  ");
}

/** The bar alone; just short of its end whatever the share. */
export function drawBar(share: number): string {
  const shown = Math.min(share, 0.999);
  const filled = Math.floor(shown * WIDTH);
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)}  ${String(Math.floor(shown * 100)).padStart(3)} %`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** `1 hour`, `2,000 hours`. */
export function many(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

function remaining(left: number, rate: number): string {
  if (rate <= 0) return "";
  const seconds = Math.ceil(Math.max(0, left) / rate);
  return seconds < 90 ? `${seconds} s left` : `${Math.ceil(seconds / 60)} min left`;
}

interface ProgressStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Of a terminal; it may change while the line is drawn. */
  readonly columns?: number;
}

export type ProgressLine = ReturnType<typeof createProgressLine>;

/**
 * One line that is drawn over and over on a terminal; elsewhere a line every few seconds, for logs, so that short work
 * says nothing there. `clear` takes the line away so that something else can be printed; `above` does so for as long as
 * `print` takes, for whatever else writes to the same terminal.
 */
export function createProgressLine(stream: ProgressStream, everyMs = 5_000, now: () => number = Date.now) {
  let printedAt = now();
  let shown = "";
  const isTTY = stream.isTTY === true;
  // A line that wraps could not be drawn over; in the last column some terminals wrap as well.
  const draw = () => stream.write(`\r${shown.slice(0, Math.max(0, (stream.columns || 80) - 1))}\u001b[K`);
  const wipe = () => stream.write("\r\u001b[K");
  return {
    update(text: string): void {
      if (isTTY) {
        shown = text;
        draw();
      } else if (now() - printedAt >= everyMs) {
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
