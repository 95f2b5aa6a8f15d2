/**
 * Stops a child process with an IPC channel when its parent sends "stop" or ends, even by kill -9. Does nothing
 * without a parent, and keeps no process running. `stop` may be called once more by a signal of the process's own,
 * because Ctrl-C reaches parent and child alike. `reload` is called when the parent sends "reload". A message that
 * came before this call is not lost.
 */
export function followParent(stop: (reason: string) => void, reload: () => void = () => undefined): void {
  if (process.channel === undefined) return;
  process.on("message", (message) => {
    if (message === "stop") stop("the starter was told to stop");
    if (message === "reload") reload();
  });
  process.once("disconnect", () => stop("the starter is gone"));
  process.channel?.unref();
}
