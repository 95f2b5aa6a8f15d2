/** Yields what `source` yields and asks for the next one while the caller works on this one. */
export async function* readAhead<T>(
  source: AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  let next = source.next();
  try {
    while (true) {
      const { done, value } = await next;
      if (done === true) return;
      next = source.next();
      // Looked at on the caller's return; until then a failure is not unhandled.
      next.catch(() => undefined);
      yield value;
    }
  } finally {
    await source.return(undefined).catch(() => undefined);
  }
}
