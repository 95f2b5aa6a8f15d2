import { DAY_MS } from "#lib/units.ts";
import { testify } from "./answer-search.ts";
import type { LiarRequest } from "./asked.ts";
import { bendEntries, isChosen, type Told } from "./bend-entries.ts";
import type { ListEntry, ListPage } from "./true-platform.ts";

const PATH = /^(\/shield\/event-logs\/\d+\/(\d\d)-(\d\d)-(\d{4}))(?:\/(.*))?$/;

/**
 * Answers one page of a day's list without the entries that the lies hide. Skips a page that loses all its entries,
 * so that a pass shows nothing unusual.
 */
export async function answerList(asked: LiarRequest): Promise<unknown> {
  const { truth, lies } = asked;
  const [, dayPath = "", month, day, year, token] = PATH.exec(asked.path) ?? [];
  const from = Date.UTC(Number(year), Number(month) - 1, Number(day));
  let page = await truth.list(asked.path);
  const isMidPass = token !== undefined && token !== "" && page.hasMoreData;
  if (isMidPass && asked.emptyPage()) return { ...page, logs: [] };
  for (;;) {
    const logs = bendPage(asked, page, from);
    if (lies.length === 0) return page;
    if (logs.length > 0 || !page.hasMoreData) {
      return {
        ...page,
        logs: [...repeatEntries(asked, decodeURIComponent(token ?? ""), { ...page, logs }), ...logs],
      };
    }
    page = await truth.list(`${dayPath}/${encodeURIComponent(page.continuationToken ?? "")}`);
  }
}

function bendPage(asked: LiarRequest, page: ListPage, dayStart: number): ListEntry[] {
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
  return shown.flatMap((line) => [{ ...line.entry, timestamp: line.timestamp }, ...breakEntry(asked, line)]);
}

/** Returns copies of the entry that cannot be read. */
function breakEntry({ lies, note }: LiarRequest, { of, timestamp }: Told<ListEntry>): ListEntry[] {
  const breaking = lies.filter((lie) => lie.kind === "unreadable" && isChosen(lie, of));
  return breaking.map((lie) => {
    note(lie, 1);
    const broken = lie.broken === "timestamp" ? { timestamp: "unreadable" } : { logId: null };
    return { ...of, logId: `${of.logId}-unreadable`, timestamp, ...broken } as unknown as ListEntry;
  });
}

/** Returns the entries of an earlier page that this page repeats. */
function repeatEntries(
  { lies, note, passes }: LiarRequest,
  token: string,
  page: ListPage,
): readonly ListEntry[] {
  const lie = lies.find(({ kind }) => kind === "repeats");
  if (lie === undefined) return [];
  const repeated = passes.follow(token, page.continuationToken, page.logs ?? []);
  if (repeated.length > 0) note(lie, repeated.length);
  return repeated;
}
