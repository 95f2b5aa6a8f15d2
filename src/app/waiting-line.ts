import type { RequestPriority } from "#adapters/edge/transport/request-gate.ts";

interface Waiter {
  readonly pass: () => void;
  readonly fail: (reason: unknown) => void;
}

/** After this wait a low caller is treated as a normal one, so that the newest minutes alone cannot stop the proof. */
const PATIENCE_MS = 30_000;

/** Callers in the order they came, normal ones before low ones that have waited less than the patience. */
export function createWaitingLine(patienceMs = PATIENCE_MS) {
  const lines: Record<RequestPriority, Set<Waiter>> = { normal: new Set(), low: new Set() };

  return {
    count: (priority: RequestPriority) => lines[priority].size,
    /** Whose turn it is; null when nobody waits. */
    head(): RequestPriority | null {
      if (lines.normal.size > 0) return "normal";
      return lines.low.size > 0 ? "low" : null;
    },
    /** Resolves when passed; rejects, and leaves the line, with the signal's reason. */
    join(priority: RequestPriority, signal: AbortSignal): Promise<void> {
      return new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(patience);
          lines.low.delete(waiter);
          lines.normal.delete(waiter);
          signal.removeEventListener("abort", onAbort);
        };
        const waiter: Waiter = {
          pass: () => [leave(), resolve()],
          fail: (reason) => [leave(), reject(reason)],
        };
        const onAbort = () => waiter.fail(signal.reason);
        const promote = () => {
          lines.low.delete(waiter);
          lines.normal.add(waiter);
        };
        const patience = priority === "low" ? setTimeout(promote, patienceMs).unref() : undefined;
        signal.addEventListener("abort", onAbort, { once: true });
        lines[priority].add(waiter);
      });
    },
    /** Lets up to `count` callers go and returns how many there were. */
    pass(count: number): number {
      const next = [...lines.normal, ...lines.low].slice(0, count);
      for (const waiter of next) waiter.pass();
      return next.length;
    },
    /** Sends everybody away. */
    dissolve(reason: Error): void {
      for (const waiter of [...lines.normal, ...lines.low]) waiter.fail(reason);
    },
  };
}
