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
