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
  const events = page.events.filter(isArchived).map((event) => setAsideEvent(event, inArchive));
  const records = await setAsideRecords(
    page.rawBlocks.filter(({ day }) => archived.has(day)),
    inArchive,
  );
  return {
    ...page,
    events: page.events.filter((event) => !isArchived(event)),
    quarantined: [...page.quarantined, ...events, ...records],
    rawBlocks: page.rawBlocks.filter(({ day }) => !archived.has(day)),
  };
}

type ReasonOf = (day: string) => string;

/** Returns an event as a quarantined entry, from which it can be read again. */
export function setAsideEvent(event: WafEvent, reasonOf: ReasonOf): NewQuarantinedEntry {
  const day = toDay(event.occurredAt);
  return { route: event.route, day, reason: reasonOf(day), raw: Buffer.from(JSON.stringify(event)) };
}

/** Returns the records of blocks as quarantined entries. */
export async function setAsideRecords(
  blocks: readonly NewRawBlock[],
  reasonOf: ReasonOf,
): Promise<NewQuarantinedEntry[]> {
  const aside: NewQuarantinedEntry[] = [];
  for (const { day, block, entryCount } of blocks)
    for (const raw of await openRawBlock(block, entryCount))
      aside.push({ route: "list", day, reason: reasonOf(day), raw });
  return aside;
}

/** The reason for quarantining what could be stored if the pseudonym key were there. */
export const WAITS_FOR_KEY = "waits for the pseudonym key";

/** Returns the reason for quarantining what arrives for an archive day. */
export function inArchive(day: string): string {
  return `${day} is an archive day, which does not change any more`;
}
