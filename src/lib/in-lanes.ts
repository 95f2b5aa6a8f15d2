/**
 * Runs `work` for each item, at most `lanes` at a time, in the order of the items. Ends when everything that has begun has
 * ended, and then rejects if something failed. After a failure that lane takes up no further item, the others do.
 */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await work(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: lanes }, lane));
  for (const one of ended) if (one.status === "rejected") throw one.reason;
}
