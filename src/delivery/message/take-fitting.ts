/** Those that fit, whole and in order; one that is too long leaves its room to the next. */
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
