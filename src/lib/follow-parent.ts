/**
 * For a process that a starter runs as its child with an IPC channel: stops when the starter says so or is gone, also
 * after its kill -9. Does nothing without a starter, and by itself keeps nothing running.
 * `stop` may be called once more by a signal of the process's own: Ctrl-C reaches starter and child alike.
 */
export function followParent(stop: (reason: string) => void): void {
  if (process.channel === undefined) return;
  process.on("message", (message) => {
    if (message === "stop") stop("the starter was told to stop");
  });
  process.once("disconnect", () => stop("the starter is gone"));
  process.channel?.unref();
}
