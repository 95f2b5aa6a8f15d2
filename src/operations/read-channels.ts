import type { Queryable } from "#db/client.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { describeCircuit } from "#stages/delivery/circuit.ts";

export interface ChannelStatus {
  readonly name: string;
  /** One of closed, open, half-open, disabled. */
  readonly circuit: string;
  readonly waiting: number;
  readonly dead: number;
  readonly lastError: string | null;
}

/** Returns every channel that was ever sent a message, by name. */
export async function readChannels(db: Queryable): Promise<ChannelStatus[]> {
  const statuses = await readChannelStatuses(db);
  return statuses.map(({ channel, nowMs, waiting, dead, lastError, ...circuit }) => ({
    name: channel,
    circuit: describeCircuit({ ...circuit, lastError }, nowMs),
    waiting,
    dead,
    lastError,
  }));
}
