import type { RequestPriority } from "../transport/request-gate.ts";

interface Waiter {
  readonly pass: () => void;
  readonly fail: (reason: unknown) => void;
}

/** After this wait a low caller counts as a normal one, so that polling cannot stop the proof. */
const PATIENCE_MS = 30_000;

/** Creates a queue in order of arrival. Normal callers precede low ones that have waited less than this. */
export function createWaitingLine(patienceMs = PATIENCE_MS) {
  const lines: Record<RequestPriority, Set<Waiter>> = { normal: new Set(), low: new Set() };

  return {
    count: (priority: RequestPriority) => lines[priority].size,
    /** Returns the priority of the next caller; null if nobody waits. */
    head(): RequestPriority | null {
      if (lines.normal.size > 0) return "normal";
      return lines.low.size > 0 ? "low" : null;
    },
    /** Resolves when the caller may go. Leaves the queue and rejects with the signal's reason if the signal aborts. */
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
    /** Lets up to `count` callers go, and returns their number. */
    pass(count: number): number {
      const next = [...lines.normal, ...lines.low].slice(0, count);
      for (const waiter of next) waiter.pass();
      return next.length;
    },
    /** Rejects all waiting callers. */
    dissolve(reason: Error): void {
      for (const waiter of [...lines.normal, ...lines.low]) waiter.fail(reason);
    },
  };
}
