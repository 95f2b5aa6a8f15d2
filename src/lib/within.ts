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
