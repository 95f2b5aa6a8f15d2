import { hash } from "node:crypto";
import { stringify } from "./stringify.ts";

/** The most pages in a row that may be empty or repeated before the command fails. */
const MAX_STALLED_PAGES = 20;

/**
 * Yields the pages while the list called `member` brings something new. Throws after 20 empty or repeated pages in a row.
 * Otherwise a platform whose tokens or page counts never end would keep the command busy for ever.
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
        `the pages do not end: ${MAX_STALLED_PAGES} pages in a row were empty or repeated; the output is incomplete`,
      );
    seen.add(digest);
    yield page;
  }
}
