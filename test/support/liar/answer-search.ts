import type { LiarRequest } from "./asked.ts";
import { type BentEntries, bendEntries, reachOf, type Told } from "./bend-entries.ts";
import { matchesFilters, splitFilters } from "./false-filters.ts";
import { groupTold } from "./group-told.ts";
import type { SearchRow, Selection } from "./true-platform.ts";

interface SearchBody extends Selection {
  readonly groupBy?: readonly string[] | null;
  readonly buckets?: number;
  readonly page?: number;
  readonly pageSize?: number;
}

interface SearchAnswer {
  readonly rows: readonly SearchRow[] | null;
  readonly groups: readonly { readonly count: number }[] | null;
  readonly total: number;
  readonly totalPages: number;
}

export const isGrouped = (body: unknown) => ((body as SearchBody).groupBy?.length ?? 0) > 0;

/** Answers flat rows: applies the lies to the whole result, then takes one page of the rest, newest first. */
export async function answerSearch(asked: LiarRequest): Promise<unknown> {
  const { truth, lies, witness, now } = asked;
  const body = asked.body as SearchBody;
  const answer = (await truth.ask(asked.path, body)) as SearchAnswer;
  const { page, pageSize } = pageOf(body);
  const isLast = page === Math.max(answer.totalPages, 1) - 1;
  if (lies.length === 0) {
    for (const row of answer.rows ?? []) witness.show(row, now);
    if (isLast && isUnfiltered(body))
      witness.search({ ...asked, ...body }, (await bendSelection(asked, body)).told);
    return answer;
  }
  const bent = await bendSelection(asked, body);
  const sorted = bent.told.toSorted(newestFirst);
  const totalPages = Math.ceil(sorted.length / pageSize);
  const isMidPass = page > 0 && page < totalPages - 1;
  const shown = isMidPass && asked.emptyPage() ? [] : sorted.slice(page * pageSize, (page + 1) * pageSize);
  const isContradictory = shown.length > 0 && asked.contradict();
  if (!isContradictory) testify(asked, shown);
  const isWhole = !lies.some(({ kind }) => kind === "emptyPage" || kind === "contradictory");
  if (isWhole && page === Math.max(totalPages, 1) - 1 && isUnfiltered(body))
    witness.search({ ...asked, ...body }, bent.told);
  const rows = shown.map(({ entry, timestamp }) => ({ ...entry, timestamp }));
  return { ...answer, rows, total: isContradictory ? shown.length - 1 : sorted.length, totalPages };
}

/** Answers groups of the changed rows, with sparklines that fit their counts. */
export async function answerCounts(asked: LiarRequest): Promise<unknown> {
  const { truth, lies, now, witness } = asked;
  const body = asked.body as SearchBody;
  const answer = (await truth.ask(asked.path, body)) as SearchAnswer;
  const { groupBy, from, to } = body;
  const buckets = Math.min(Math.max(body.buckets ?? 0, 0), 500);
  const bent = await bendSelection(asked, body, buckets);
  const grouping = { groupBy: groupBy ?? [], buckets, from, to };
  const groups = groupTold(bent.told, grouping);
  const { page, pageSize } = pageOf(body);
  const onPage = groups.slice(page * pageSize, (page + 1) * pageSize);
  const [first] = onPage;
  const isContradictory = first !== undefined && asked.contradict();
  if (isContradictory) first.shown.count++;
  else {
    const falseCells = new Set(bent.changed.flatMap((row) => cellsOf(row, bent.told, grouping)));
    for (const { told } of onPage) {
      for (const { of } of told)
        if (!falseCells.has(cellOf(of, of.timestamp, grouping))) witness.count(of, now);
    }
    const isWhole = page === Math.max(Math.ceil(groups.length / pageSize), 1) - 1;
    if (isWhole && grouping.groupBy.join() === "ruleId" && isUnfiltered(body))
      witness.compare({ ...asked, from, to }, bent.told);
  }
  if (lies.length === 0) return answer;
  const totalPages = Math.ceil(groups.length / pageSize);
  return { ...answer, groups: onPage.map(({ shown }) => shown), total: groups.length, totalPages };
}

/** Answers the rows as CSV, newest first. */
export async function answerExport(asked: LiarRequest): Promise<string> {
  const bent = await bendSelection(asked, asked.body as Selection);
  testify(asked, bent.told);
  const columns = ["feature", "ruleId", "ip", "ja4", "ua", "url", "asn", "country", "action"];
  const lines = bent.told.toSorted(newestFirst).map(({ entry, timestamp }) => {
    const cells = columns.map((name) => csvCell(entry.fields[name] ?? ""));
    return `${[String(timestamp), entry.logId, ...cells].join(",")}\r\n`;
  });
  return `timestamp,logId,${columns.join(",")}\r\n${lines.join("")}`;
}

async function bendSelection(
  asked: LiarRequest,
  selection: Selection,
  buckets?: number,
): Promise<BentEntries<SearchRow>> {
  const { truth, zone, lies, now } = asked;
  const { byPlatform, byLiar } = splitFilters(selection.filters, lies);
  const rows = await truth.loadRows(zone, { ...selection, filters: byPlatform }, reachOf(lies));
  const { from, to } = selection;
  const bent = bendEntries(rows, lies, { from, to, now, ...(buckets === undefined ? {} : { buckets }) });
  const told = bent.told.filter(({ entry }) => matchesFilters(entry, byLiar));
  const kept = new Set(told.map(({ of }) => of));
  const changed = bent.changed.filter((row) => kept.has(row) || matchesFilters(row, byLiar));
  asked.tally(changed);
  return { told, changed };
}

/** Records what the lines of an answer show of single events. An answer that contradicts itself shows nothing. */
export function testify(
  { witness, now }: LiarRequest,
  told: readonly Told<{ logId: string; timestamp: number }>[],
): void {
  for (const { of, entry, timestamp, isTrue, falseFields } of told) {
    if (entry.logId !== of.logId) witness.invent(entry.logId);
    else if (isTrue) witness.show(of, now);
    else if (timestamp !== of.timestamp) witness.mislead(of.logId, timestamp);
    if (falseFields.length > 0) witness.falsify(of.logId, falseFields);
  }
}

type Grouping = Parameters<typeof groupTold>[1];

function cellOf({ fields }: SearchRow, at: number, { groupBy, buckets, from, to }: Grouping): string {
  const bucket = buckets > 0 ? Math.floor(((at - from) * buckets) / (to - from)) : 0;
  return JSON.stringify([bucket, ...groupBy.map((name) => fields[name] ?? "")]);
}

/** Returns the cells that an event belongs to, and those that the answer counts it in. */
function cellsOf(row: SearchRow, told: readonly Told<SearchRow>[], grouping: Grouping): string[] {
  const lines = told.filter(({ of }) => of === row);
  return [
    cellOf(row, row.timestamp, grouping),
    ...lines.map(({ entry, timestamp }) => cellOf(entry, timestamp, grouping)),
  ];
}

function isUnfiltered({ filters }: SearchBody): boolean {
  return !Array.isArray(filters) || filters.length === 0;
}

function pageOf({ page = 0, pageSize = 50 }: SearchBody) {
  return { page: Math.max(page, 0), pageSize: Math.min(Math.max(pageSize, 1), 500) };
}

function newestFirst(one: Told<SearchRow>, other: Told<SearchRow>): number {
  return other.timestamp - one.timestamp || (one.entry.logId < other.entry.logId ? 1 : -1);
}

function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
