import { DAY_MS } from "../../../src/lib/units.ts";
import { testify } from "./answer-search.ts";
import type { Asked } from "./asked.ts";
import { bendEntries } from "./bend-entries.ts";
import type { ListEntry, ListPage } from "./true-platform.ts";

const PATH = /^(\/shield\/event-logs\/\d+\/(\d\d)-(\d\d)-(\d{4}))(?:\/(.*))?$/;

/**
 * Answers one page of a day's list without the entries that the lies hide. Skips a page that loses all its entries,
 * so that a pass shows nothing unusual.
 */
export async function answerList(asked: Asked): Promise<unknown> {
  const { truth, lies } = asked;
  const [, dayPath = "", month, day, year, token] = PATH.exec(asked.path) ?? [];
  const from = Date.UTC(Number(year), Number(month) - 1, Number(day));
  let page = await truth.list(asked.path);
  const isMidPass = token !== undefined && token !== "" && page.hasMoreData;
  if (isMidPass && asked.emptyPage()) return { ...page, logs: [] };
  for (;;) {
    const logs = bendPage(asked, page, from);
    if (lies.length === 0) return page;
    if (logs.length > 0 || !page.hasMoreData) return { ...page, logs };
    page = await truth.list(`${dayPath}/${encodeURIComponent(page.continuationToken ?? "")}`);
  }
}

function bendPage(asked: Asked, page: ListPage, dayStart: number): ListEntry[] {
  const entries = page.logs ?? [];
  const { told, changed } = bendEntries(entries, asked.lies, {
    from: dayStart,
    to: dayStart + DAY_MS,
    now: asked.now,
  });
  asked.tally(changed);
  const isDescending = (entries[0]?.timestamp ?? 0) > (entries.at(-1)?.timestamp ?? 0);
  const sorted = told.toSorted((one, other) => (one.timestamp - other.timestamp) * (isDescending ? -1 : 1));
  const [first, ...others] = sorted;
  const isContradictory = first !== undefined && asked.contradict();
  const shown = isContradictory ? [{ ...first, timestamp: dayStart - 1 }, ...others] : sorted;
  if (!isContradictory) testify(asked, shown);
  else asked.witness.mislead(first.entry.logId, dayStart - 1);
  return shown.map(({ entry, timestamp }) => ({ ...entry, timestamp }));
}
