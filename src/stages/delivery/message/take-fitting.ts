/** Returns the items that fit, whole and in order; an item that is too long is skipped. */
export function takeFitting<Item>(
  items: readonly Item[],
  room: number,
  costOf: (item: Item) => number,
): Item[] {
  let left = room;
  return items.filter((item) => {
    const cost = costOf(item);
    if (cost > left) return false;
    left -= cost;
    return true;
  });
}
