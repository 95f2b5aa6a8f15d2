import { hash } from "node:crypto";
import { readCsv } from "#proof/backfill/read-csv.ts";
import { stringify } from "./edge-io.ts";

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

/** Yields the pages until the list called `member` has had `limit` items. Cuts the last page and reads no page after it. */
export async function* limitItems<Page extends Record<string, unknown>>(
  pages: AsyncIterable<Page>,
  member: string,
  limit = Number.POSITIVE_INFINITY,
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

const ROWS_PER_PAGE = 500;

/** Yields the rows as objects. Every cell stays text, as in the file. */
export async function* toPages(csv: AsyncIterable<Buffer>) {
  let header: readonly string[] | undefined;
  let items: Record<string, string>[] = [];
  for await (const { cells } of readCsv(csv)) {
    if (header === undefined) header = cells;
    else items.push(Object.fromEntries(header.map((name, column) => [name, cells[column] ?? ""])));
    if (items.length < ROWS_PER_PAGE) continue;
    yield { items, next: null };
    items = [];
  }
  yield { items, next: null };
}

const SHOWN_CHARS = 4;
/** A shorter key is masked completely, because four characters would reveal too much of it. */
const LEAST_CHARS = 16;

/** Masks the key. The first characters stay, so that people can distinguish keys. */
export function maskKey<Item extends { readonly Key: string }>(item: Item): Item {
  const shown = item.Key.length < LEAST_CHARS ? "" : item.Key.slice(0, SHOWN_CHARS);
  return { ...item, Key: `${shown}********` };
}
