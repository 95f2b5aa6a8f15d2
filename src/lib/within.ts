/**
 * Waits at most `timeoutMs`. A late promise is left alone, its failure included: callers use this where the store may
 * be gone and nothing can be said about the call any more.
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
