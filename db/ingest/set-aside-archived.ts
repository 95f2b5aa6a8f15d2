import { openRawBlock } from "#model/raw-block.ts";
import type { NewQuarantinedEntry } from "./quarantine.ts";
import type { NewRawBlock } from "./raw-blocks.ts";
import type { NewEvents } from "./store-events.ts";

interface Page {
  readonly events: NewEvents;
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
}

const LINE_END = 0x0a;
const DAY_CHARS = "yyyy-mm-dd".length;

/**
 * Moves a page's events and records of archive days to its quarantined entries, because an archive day does not change:
 * an event as the line that COPY would have stored, a record as it was received.
 */
export async function setAsideArchived<P extends Page>(page: P, archived: ReadonlySet<string>): Promise<P> {
  const kept: Buffer[] = [];
  const aside: NewQuarantinedEntry[] = [];
  const { rows } = page.events;
  for (let from = 0; from < rows.length; ) {
    const end = rows.indexOf(LINE_END, from) + 1 || rows.length;
    const day = rows.toString("utf8", from, from + DAY_CHARS);
    if (archived.has(day))
      aside.push(quarantine(day, readRoute(rows.subarray(from, end)), rows.subarray(from, end)));
    else kept.push(rows.subarray(from, end));
    from = end;
  }
  aside.push(...(await setAsideRecords(page.rawBlocks, archived)));
  return {
    ...page,
    events: { ...page.events, rows: Buffer.concat(kept), size: kept.length },
    quarantined: [...page.quarantined, ...aside],
    rawBlocks: page.rawBlocks.filter(({ day }) => !archived.has(day)),
  };
}

/** Returns the records of archive days as quarantined entries. */
export async function setAsideRecords(
  blocks: readonly NewRawBlock[],
  archived: ReadonlySet<string>,
): Promise<NewQuarantinedEntry[]> {
  const aside: NewQuarantinedEntry[] = [];
  for (const { day, block, entryCount } of blocks) {
    if (!archived.has(day)) continue;
    for (const raw of await openRawBlock(block, entryCount)) aside.push(quarantine(day, "list", raw));
  }
  return aside;
}

type Route = NewQuarantinedEntry["route"];

function quarantine(day: string, route: Route, raw: Buffer): NewQuarantinedEntry {
  return {
    route,
    day,
    reason: `${day} is an archive day, which does not change any more`,
    raw: Buffer.from(raw),
  };
}

/** The fourth column of `EVENT_COLUMNS`; no value holds a bare tab. */
function readRoute(line: Buffer): Route {
  return line.toString().split("\t", 4)[3] === "search" ? "search" : "list";
}
