/**
 * Returns a function that collects the items of one turn of the event loop and passes them to `run` at once. Every
 * caller gets the outcome of its batch. The items of the next turn are another batch, which does not wait for this
 * one.
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
