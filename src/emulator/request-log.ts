import type { Operation } from "./operations.ts";

const KEPT = 500;

export interface RequestEntry {
  readonly at: number;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** 0 before the answer, or if the connection was cut before one. */
  status: number;
  readonly faults: readonly string[];
}

export type RequestLog = ReturnType<typeof createRequestLog>;

/** Returns a log of requests: counts since the start, and the last requests. */
export function createRequestLog() {
  const counts = new Map<Operation, number>();
  const last: RequestEntry[] = [];
  return {
    add(entry: RequestEntry): RequestEntry {
      counts.set(entry.operation, (counts.get(entry.operation) ?? 0) + 1);
      last.push(entry);
      if (last.length > KEPT) last.shift();
      return entry;
    },
    show: () => ({ counts: Object.fromEntries(counts), last: [...last] }),
  };
}
