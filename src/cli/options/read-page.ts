import type { FlagReader } from "../edge/flag-reader.ts";

const MAX_LIMIT = 10_000;
export const AFTER_OPTION = ["--after <next>", "the page after the one whose `next` this was"] as const;

export interface PageFlags {
  readonly limit?: string;
  readonly after?: string;
}

/** Which page of a list; ids fall, so a page begins below the last id of the page before. */
export interface AskedPage {
  readonly limit: number;
  readonly beforeId: number | undefined;
}

/** `--limit` and `--after`. */
export function readPage(read: FlagReader, flags: PageFlags, fallback: number): AskedPage {
  const rule = `a whole number from 1 to ${MAX_LIMIT}`;
  const limit = read.integer("limit", flags.limit, rule) ?? fallback;
  if (limit < 1 || limit > MAX_LIMIT) read.wrong("limit", flags.limit, rule);
  const { after } = flags;
  const isRead = after === undefined || /^[1-9]\d{0,14}$/.test(after);
  if (!isRead) read.wrong("after", after, "the `next` of this list's page before");
  return { limit, beforeId: after === undefined || !isRead ? undefined : Number(after) };
}

/** One more than is shown tells whether there are more. */
export function oneMore({ limit, beforeId }: AskedPage): AskedPage {
  return { limit: limit + 1, beforeId };
}

/** `items` and `next` as the API has them; `next` is the last id shown. */
export function toListPage<Row extends { readonly id: number }, Item>(
  rows: readonly Row[],
  { limit }: AskedPage,
  toItem: (row: Row) => Item,
): { items: Item[]; next: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? String(last.id) : null;
  return { items: shown.map(toItem), next };
}

/** A line that says how the list goes on; empty on the last page. */
export function describeNext(next: string | null): string {
  return next === null ? "" : `There are more: --after ${next} goes on, --limit says how many are shown.\n`;
}
