/**
 * Collects the items of one turn of the event loop and hands them to `run` at once. Every caller gets the outcome of its
 * batch; the next turn's items are another batch and wait for nobody.
 */
export function createBatch<Item, Result>(
  run: (items: Item[]) => Promise<Result>,
): (item: Item) => Promise<Result> {
  let waiting: { items: Item[]; outcome: Promise<Result> } | null = null;
  return (item) => {
    if (waiting === null) {
      const items: Item[] = [];
      const outcome = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        waiting = null;
        return run(items);
      });
      waiting = { items, outcome };
    }
    waiting.items.push(item);
    return waiting.outcome;
  };
}
