/** Returns whether a process has this id, of whatever user. Process ids are reused: it may be another one than was meant. */
export function isAlive(pid: number): boolean {
  try {
    // Signal 0 only asks.
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "EPERM";
  }
}
