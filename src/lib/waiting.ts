/** Waiting: for a time, for an abort, in lanes and turns, and until a deadline. */

// Not that of node:timers/promises, because the console loads this file in a browser.
const letOthersRun = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Resolves after `ms` milliseconds. @throws the signal's reason if it aborts before */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => [clearTimeout(timer), reject(signal?.reason)];
    const timer = setTimeout(() => [signal?.removeEventListener("abort", onAbort), resolve()], ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Waits for a promise no longer than until a signal aborts. The promise goes on; a late failure is ignored. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  promise.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Waits at most `timeoutMs`. A late promise is abandoned and its failure ignored: callers use this if the store may
 * be gone and the outcome of the call is unknown.
 */
export async function within(promise: Promise<unknown>, timeoutMs: number): Promise<"done" | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), timeoutMs);
  });
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise.then(() => "done" as const), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs `work` for each item, at most `lanes` at a time, in the order of the items. Ends when everything that has begun has
 * ended, and then rejects if something failed. After a failure that lane takes up no further item, the others do.
 */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await work(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: lanes }, lane));
  for (const one of ended) if (one.status === "rejected") throw one.reason;
}

/** Yields the items of `source` and requests the next one while the caller works on the current one. */
export async function* readAhead<T>(
  source: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  let next = source.next();
  try {
    while (true) {
      const { done, value } = await next;
      if (done === true) return;
      next = source.next();
      // Awaited when the caller returns. Until then a failure must not be unhandled.
      next.catch(() => undefined);
      yield value;
    }
  } finally {
    await source.return(undefined).catch(() => undefined);
  }
}

/** An event takes up to ten microseconds to count on a busy machine, so this many take about 20 ms. */
const ITEMS_PER_TURN = 2_000;

/** Yields a list in parts of at most 2,000 items, and lets requests and timers run between them. */
export async function* inTurns<T>(all: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let from = 0; from < all.length; from += ITEMS_PER_TURN) {
    if (from > 0) await letOthersRun();
    yield all.length <= ITEMS_PER_TURN ? all : all.slice(from, from + ITEMS_PER_TURN);
  }
}

export type EndedBy = "timeout" | "caller" | "closed";

export interface Deadline {
  /** Aborts at the first of: the end of the time, the caller's signal, the closing of the transport. */
  readonly signal: AbortSignal;
  /** Returns why the signal was aborted; null while it was not. */
  endedBy(): EndedBy | null;
  /** Runs `wait` with the clock stopped, because its time does not count. Caller and transport can still abort. */
  suspend(wait: () => Promise<void>): Promise<void>;
  /** Releases timer and listeners; call it at the end of the work. */
  release(): void;
}

/**
 * Starts the total time of one call, including retries and pauses, without the wait for the request budget.
 * AbortSignal.timeout and AbortSignal.any are not used, because their timer and links to a caller's long-lived signal
 * would outlast thousands of short calls.
 */
export function startDeadline(
  timeoutMs: number | null,
  caller: AbortSignal | undefined,
  closing: AbortSignal,
): Deadline {
  const controller = new AbortController();
  let endedBy: EndedBy | null = null;
  const end = (by: EndedBy) => {
    endedBy ??= by;
    controller.abort(new Error(`ended by ${by}`));
  };
  const onCaller = () => end("caller");
  const onClosing = () => end("closed");
  let timer: NodeJS.Timeout | undefined;
  let remainingMs = timeoutMs;
  let runningSince = 0;
  const run = () => {
    if (remainingMs === null) return;
    runningSince = performance.now();
    timer = setTimeout(() => end("timeout"), Math.max(remainingMs, 1));
  };
  const hold = () => {
    clearTimeout(timer);
    if (remainingMs !== null) remainingMs -= performance.now() - runningSince;
  };
  run();
  caller?.addEventListener("abort", onCaller, { once: true });
  closing.addEventListener("abort", onClosing, { once: true });
  if (caller?.aborted === true) onCaller();
  if (closing.aborted) onClosing();
  return {
    signal: controller.signal,
    endedBy: () => endedBy,
    async suspend(wait) {
      hold();
      try {
        await wait();
      } finally {
        run();
      }
    },
    release() {
      clearTimeout(timer);
      caller?.removeEventListener("abort", onCaller);
      closing.removeEventListener("abort", onClosing);
    },
  };
}
