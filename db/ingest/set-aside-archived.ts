import { toDay } from "#model/horizon.ts";
import { openRawBlock } from "#model/raw-block.ts";
import type { WafEvent } from "#model/waf-event.ts";
import type { NewQuarantinedEntry } from "./quarantine.ts";
import type { NewRawBlock } from "./raw-blocks.ts";

interface Page {
  readonly zoneId: number;
  readonly events: readonly WafEvent[];
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
}

/**
 * Moves a page's events and records of archive days to its quarantined entries, because an archive day does not change:
 * an event as JSON, a record as it was received.
 */
export async function setAsideArchived<P extends Page>(page: P, archived: ReadonlySet<string>): Promise<P> {
  if (archived.size === 0) return page;
  const isArchived = ({ occurredAt }: WafEvent) => archived.has(toDay(occurredAt));
  const events = page.events
    .filter(isArchived)
    .map((event) => quarantine(toDay(event.occurredAt), event.route, Buffer.from(JSON.stringify(event))));
  const records = await setAsideRecords(page.rawBlocks, archived);
  return {
    ...page,
    events: page.events.filter((event) => !isArchived(event)),
    quarantined: [...page.quarantined, ...events, ...records],
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

function quarantine(day: string, route: NewQuarantinedEntry["route"], raw: Buffer): NewQuarantinedEntry {
  return { route, day, reason: inArchive(day), raw };
}

/** Returns the reason for quarantining what arrives for an archive day. */
export function inArchive(day: string): string {
  return `${day} is an archive day, which does not change any more`;
}
