import { hashLogId, joinIdDigests, NO_IDS } from "./id-digest.ts";

/** A log id that a route shows in one hour and whose event is stored in another; epoch ms of their starts. */
export interface MovedId {
  readonly logId: string;
  readonly shownIn: number;
  readonly storedIn: number;
}

interface IdSet {
  readonly count: number;
  readonly ids: string;
}

/** Returns the hours that change if each id is counted in the hour in which its event is stored. */
export function moveIds(shown: ReadonlyMap<number, IdSet>, moved: readonly MovedId[]): Map<number, IdSet> {
  const changed = new Map<number, IdSet>();
  const add = (hour: number, logId: string, events: number) => {
    const { count, ids } = changed.get(hour) ?? shown.get(hour) ?? { count: 0, ids: NO_IDS };
    // An exclusive or also takes an id out of a digest.
    changed.set(hour, { count: count + events, ids: joinIdDigests(ids, hashLogId(logId)) });
  };
  for (const { logId, shownIn, storedIn } of moved) {
    add(shownIn, logId, -1);
    add(storedIn, logId, 1);
  }
  return changed;
}
