import type { FlagReader } from "../edge/flag-reader.ts";

const MAX_LIMIT = 10_000;
export const AFTER_OPTION = [
  "--after <next>",
  "show the next page: the `next` of the previous page",
] as const;

export interface PageFlags {
  readonly limit?: string;
  readonly after?: string;
}

/** One page of a list. Ids descend, so a page begins below the last id of the previous page. */
export interface AskedPage {
  readonly limit: number;
  readonly beforeId: number | undefined;
}

/** Reads `--limit` and `--after`. */
export function readPage(read: FlagReader, flags: PageFlags, fallback: number): AskedPage {
  const rule = `a whole number from 1 to ${MAX_LIMIT}`;
  const limit = read.integer("limit", flags.limit, rule) ?? fallback;
  if (limit < 1 || limit > MAX_LIMIT) read.wrong("limit", flags.limit, rule);
  const { after } = flags;
  const isRead = after === undefined || /^[1-9]\d{0,14}$/.test(after);
  if (!isRead) read.wrong("after", after, "the `next` of the previous page");
  return { limit, beforeId: after === undefined || !isRead ? undefined : Number(after) };
}

/** Asks for one more row than is shown, to find out whether there is a next page. */
export function oneMore({ limit, beforeId }: AskedPage): AskedPage {
  return { limit: limit + 1, beforeId };
}

/** Returns `items` and `next` as the API does; `next` is the last id shown, or what `toNext` makes of the last row. */
export function toListPage<Row extends { readonly id: number }, Item>(
  rows: readonly Row[],
  { limit }: Pick<AskedPage, "limit">,
  toItem: (row: Row) => Item,
  toNext = ({ id }: Row) => String(id),
): { items: Item[]; next: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? toNext(last) : null;
  return { items: shown.map(toItem), next };
}

/** Returns a line that names the next page, or an empty text on the last page. */
export function describeNext(next: string | null): string {
  return next === null ? "" : `There are more: --after ${next} shows the next page, --limit sets its size.\n`;
}
