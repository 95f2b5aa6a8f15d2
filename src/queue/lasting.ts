/** What BullMQ's queues and workers have in common. */
export interface Part {
  on(event: "error", listener: (error: Error) => void): unknown;
  /** Resolves once the store has answered; a failure of the first connection is remembered for good. */
  waitUntilReady(): Promise<unknown>;
  /** Takes leave of the store, which fails where it is gone. */
  close(): Promise<void>;
  /** Drops the connection. */
  disconnect(): Promise<void>;
}

export interface Lasting<P extends Part> {
  /** The open part, connected; pending while the store does not answer, rejected where it answered with an error. */
  ready(): Promise<P>;
  /** Puts a new part in the place of the present one, which ends by itself. */
  replace(): void;
  close(): Promise<void>;
}

const ignore = () => undefined;

/** A part whose store is gone would otherwise try for ever to reach it. */
function end(part: Part): Promise<void> {
  return part.close().catch(() => part.disconnect());
}

/** A part that is opened anew until its first connection comes about: BullMQ itself would stay dead after a failed one. */
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
