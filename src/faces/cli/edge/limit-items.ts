/** Yields the pages until the list called `member` has had `limit` items. Cuts the last page and reads no page after it. */
export async function* limitItems<Page extends Record<string, unknown>>(
  pages: AsyncIterable<Page>,
  member: string,
  limit: number,
): AsyncGenerator<Page, void, undefined> {
  let left = limit;
  for await (const page of pages) {
    const list = page[member];
    const items: readonly unknown[] = Array.isArray(list) ? list : [];
    yield { ...page, [member]: items.slice(0, left) };
    left -= items.length;
    if (left <= 0) return;
  }
}
