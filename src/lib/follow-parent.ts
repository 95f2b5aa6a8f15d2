/**
 * Stops a child process with an IPC channel when its parent sends "stop" or ends, even by kill -9. Does nothing
 * without a parent, and keeps no process running. `stop` may be called once more by a signal of the process's own,
 * because Ctrl-C reaches parent and child alike.
 */
export function followParent(stop: (reason: string) => void): void {
  if (process.channel === undefined) return;
  process.on("message", (message) => {
    if (message === "stop") stop("the starter was told to stop");
  });
  process.once("disconnect", () => stop("the starter is gone"));
  process.channel?.unref();
}
