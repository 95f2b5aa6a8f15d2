import {
  createZoneReplay,
  type ReplayPolicy,
  type ZoneReplay,
} from "#stages/detection/backtest/replay-zone.ts";
import type { ReplayedMessage } from "#stages/detection/backtest/replayed-message.ts";
import type { StoreIo } from "../store/store-command.ts";
import { readEvents } from "./read-events.ts";
import { readInput } from "./read-input.ts";

export interface EventsReport {
  readonly zones: number;
  readonly rows: number;
  readonly zoneDays: number;
  /** By zone, in the order of time. */
  readonly messages: readonly (ReplayedMessage & { readonly zone: string })[];
}

/**
 * Replays a CSV file of events. Rows of a zone come in the order of time; zones may alternate.
 * @throws {UsageError} when the file cannot be read or has a mistake.
 */
export async function replayEvents(
  path: string,
  policy: ReplayPolicy,
  stderr: StoreIo["stderr"],
): Promise<EventsReport> {
  const zones = new Map<string, { replay: ZoneReplay; firstSecond: number; lastSecond: number }>();
  let rows = 0;
  await readInput({ flag: "--events", path, stderr }, (chunks, onRow) =>
    readEvents(chunks, (zone, second, event) => {
      const one = zones.get(zone) ?? {
        replay: createZoneReplay(policy),
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
