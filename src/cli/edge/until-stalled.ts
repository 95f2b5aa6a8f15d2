import { hash } from "node:crypto";
import { stringify } from "./stringify.ts";

/** So many pages in a row that were empty or shown before: the pages lead nowhere. */
const MAX_STALLED_PAGES = 20;

/**
 * Yields the pages while they bring something new in the list called `member`. Throws once 20 pages in a row were empty or
 * came before: tokens that never repeat and page counts that never end would keep a command for ever.
 */
export async function* untilStalled<Page extends Record<string, unknown>>(
  pages: AsyncIterable<Page>,
  member: string,
): AsyncGenerator<Page, void, undefined> {
  const seen = new Set<string>();
  let stalled = 0;
  for await (const page of pages) {
    const list = page[member];
    const digest = hash("sha256", stringify(list));
    const isEmpty = !Array.isArray(list) || list.length === 0;
    stalled = isEmpty || seen.has(digest) ? stalled + 1 : 0;
    if (stalled > MAX_STALLED_PAGES)
      throw new Error(
        `the pages do not end: ${MAX_STALLED_PAGES} pages in a row were empty or came before; what was written is incomplete`,
      );
    seen.add(digest);
    yield page;
  }
}
