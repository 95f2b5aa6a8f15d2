import type { ActionStates } from "#model/action-class.ts";
import {
  createZoneReplay,
  type ReplayPolicy,
  type ZoneReplay,
} from "#stages/alerting/backtest/replay-zone.ts";
import type { ReplayedMessage } from "#stages/alerting/backtest/replayed-message.ts";
import { judgeVerdict } from "#stages/detection/verdict/judge-verdict.ts";
import type { StoreIo } from "../store/store-command.ts";
import { readEntries } from "./read-entries.ts";
import { readEvents, type TakeEvent } from "./read-events.ts";
import { readInput } from "./read-input.ts";

export interface EventsReport {
  readonly zones: number;
  readonly rows: number;
  readonly zoneDays: number;
  /** Messages by zone, in the order of time. */
  readonly messages: readonly (ReplayedMessage & { readonly zone: string })[];
}

/**
 * Replays a file of events: CSV, or NDJSON if it begins with a brace. Rows of a zone come in the order of time; zones may alternate.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function replayEvents(
  path: string,
  { actions, ...policy }: ReplayPolicy & { readonly actions: ActionStates },
  stderr: StoreIo["stderr"],
): Promise<EventsReport> {
  const zones = new Map<string, { replay: ZoneReplay; firstSecond: number; lastSecond: number }>();
  let rows = 0;
  await readInput({ flag: "--events", path, stderr }, (chunks, onRow) =>
    readAny(chunks, actions, (zone, second, event) => {
      const one = zones.get(zone) ?? {
        replay: createZoneReplay({ ...policy, judge: (evidence) => judgeVerdict(evidence) }),
        firstSecond: second,
        lastSecond: second,
      };
      if (second < one.lastSecond) return one.lastSecond;
      zones.set(zone, one);
      one.lastSecond = second;
      one.replay.take(event, Math.floor(second / 60));
      rows += 1;
      onRow();
      return undefined;
    }),
  );
  const messages = [...zones].flatMap(([zone, { replay }]) =>
    replay.finish().map((message) => ({ zone, ...message })),
  );
  const seconds = [...zones.values()].reduce((sum, one) => sum + one.lastSecond - one.firstSecond, 0);
  return { zones: zones.size, rows, zoneDays: seconds / 86_400, messages };
}

/** Reads CSV or NDJSON, by the first character. */
async function readAny(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const pieces = chunks[Symbol.asyncIterator]();
  const first = await pieces.next();
  async function* all() {
    if (first.done === true) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => pieces };
  }
  const isJson = first.done !== true && /^\ufeff?\s*\{/.test(first.value.toString("utf8", 0, 64));
  return isJson ? readEntries(all(), actions, take) : readEvents(all(), actions, take);
}
