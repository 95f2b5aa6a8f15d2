/** The common interface of BullMQ's queues and workers. */
export interface Part {
  on(event: "error", listener: (error: Error) => void): unknown;
  /** Resolves once the store has answered. A failure of the first connection is permanent. */
  waitUntilReady(): Promise<unknown>;
  /** Closes the part with its store, which fails if the store is unreachable. */
  close(): Promise<void>;
  /** Drops the connection. */
  disconnect(): Promise<void>;
}

export interface Lasting<P extends Part> {
  /**
   * Returns the open, connected part. Pending while the store does not answer, rejected if it answered with an error.
   */
  ready(): Promise<P>;
  /** Replaces the current part, which ends in the background. */
  replace(): void;
  close(): Promise<void>;
}

const ignore = () => undefined;

/** Ends a part. A part whose store is unreachable would otherwise try forever to connect. */
function end(part: Part): Promise<void> {
  return part.close().catch(() => part.disconnect());
}

/**
 * Returns a part that is opened again until its first connection succeeds, because BullMQ does not recover from a
 * failed first connection.
 */
export function openLasting<P extends Part>(
  open: () => P,
  onError: (error: Error) => void,
  retryMs: number,
): Lasting<P> {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let part: P;
  let ready: Promise<P>;

  function begin() {
    const opened = open();
    opened.on("error", onError);
    part = opened;
    ready = opened.waitUntilReady().then(() => opened);
    ready.catch(() => {
      if (isClosed || part !== opened) return;
      end(opened).catch(ignore);
      timer = setTimeout(begin, retryMs).unref();
    });
  }

  begin();
  return {
    ready: () => ready,
    replace() {
      if (isClosed) return;
      clearTimeout(timer);
      const former = part;
      begin();
      end(former).catch(ignore);
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      return end(part);
    },
  };
}
