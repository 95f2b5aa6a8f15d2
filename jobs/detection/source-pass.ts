import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { CountBudget } from "./count-source-hours.ts";
import type { KeptWatch } from "./kept-watch.ts";
import type { DueZone, ReadTickDeps, SourceTick } from "./source-tick.ts";

export interface DetectSourcesDeps extends ReadTickDeps {
  readonly log: Log;
  readonly zoneIds: readonly number[];
  /** Names the settings that are in use, together with the fingerprint of a zone's known sources. */
  readonly settingsOf?: (known: string) => string;
  /** Called when a zone's sources fired, changed or became quiet. */
  readonly afterSpikes: () => unknown;
}

/** One pass of a tick over zones. */
export interface Pass {
  readonly deps: DetectSourcesDeps;
  readonly tick: SourceTick;
  readonly kept: Map<number, KeptWatch>;
  readonly budget: CountBudget;
  readonly tried: Set<number>;
  /** Zones that have hours to count from their events. */
  readonly stale: Set<number>;
  readonly signal: AbortSignal;
  /** Zones whose running minute is judged, too, because something of them comes near its line. */
  readonly rising: Set<number>;
  changed: number;
  /** False if there is work left for another pass. */
  isDone: boolean;
  failure: Error | null;
}

/** Zones whose watches are made together. */
export const ZONES_PER_WARMING = 50;

export function toBatches<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

/**
 * Runs a step for zones. If it fails for one of them, that zone loses its watch, and the others are not stopped. When the
 * service stops, its connections end and every zone would fail.
 */
export async function attempt(
  pass: Pass,
  zones: readonly DueZone[],
  run: (zones: readonly DueZone[]) => Promise<unknown>,
): Promise<void> {
  try {
    await run(zones);
  } catch (thrown) {
    for (const { zoneId } of zones) pass.kept.delete(zoneId);
    if (pass.signal.aborted) throw thrown;
    if (zones.length === 1) {
      pass.tried.add(zones[0]?.zoneId ?? 0);
      pass.failure = toError(thrown);
      pass.deps.log.error({ err: pass.failure, zoneId: zones[0]?.zoneId }, "sources of a zone not judged");
    } else for (const zone of zones) await attempt(pass, [zone], run);
  }
}
