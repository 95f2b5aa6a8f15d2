/** Resolves after `ms` milliseconds. @throws the signal's reason if it aborts before */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => [clearTimeout(timer), reject(signal?.reason)];
    const timer = setTimeout(() => [signal?.removeEventListener("abort", onAbort), resolve()], ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
