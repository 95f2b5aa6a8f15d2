import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { toError, UsageError } from "#lib/errors.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { Attack } from "./traffic/attack.ts";
import type { ZonePlan } from "./traffic/traffic.ts";
import { HORIZON_MS } from "./zone-store.ts";

/**
 * A 72 hour history starts this much later than the platform's retention, so that a first copy is complete before
 * events expire.
 */
const HISTORY_MARGIN_MS = 15 * 60_000;

const State = z.strictObject({
  version: z.literal(1),
  seed: z.string(),
  zones: z.array(
    z.strictObject({
      id: z.int(),
      firstEventMs: z.int(),
      createdAtMs: z.int(),
      rates: z.array(z.strictObject({ sinceMs: z.int(), eventsPerSecond: z.number() })).min(1),
    }),
  ),
  attacks: z.array(Attack),
});
/** Everything that is needed to show the same past again. */
export type State = z.infer<typeof State>;

function readState(file: string): State | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    if (toError(thrown) instanceof Error && (thrown as NodeJS.ErrnoException).code === "ENOENT")
      return undefined;
    throw thrown;
  }
  try {
    return State.parse(JSON.parse(text));
  } catch (thrown) {
    throw new UsageError([
      `state file ${file} is not readable as emulator state (${toError(thrown).message}); move it away to start a new past`,
    ]);
  }
}

/**
 * Saves the state to a second file that is then renamed, so that a kill leaves the old or the new state, never half
 * of one. Only its user may read it.
 */
export function saveState(file: string | undefined, state: State): void {
  if (file === undefined) return;
  mkdirSync(dirname(file), { recursive: true });
  const draft = `${file}.${process.pid}.tmp`;
  // Replaces a second file that a kill left with another mode.
  rmSync(draft, { force: true });
  writeFileSync(draft, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(draft, file);
}

interface Wanted {
  readonly seed: string;
  readonly zones: readonly number[];
  readonly eventsPerSecond: number;
  readonly historyHours: number;
  readonly nowMs: number;
}

function planZone(known: ZonePlan | undefined, id: number, wanted: Wanted): ZonePlan {
  const { nowMs } = wanted;
  const eventsPerSecond = wanted.eventsPerSecond / wanted.zones.length;
  if (known === undefined) {
    const ageMs = wanted.historyHours * 3_600_000;
    const firstEventMs = nowMs - (ageMs === HORIZON_MS ? ageMs - HISTORY_MARGIN_MS : ageMs);
    return { id, firstEventMs, createdAtMs: nowMs, rates: [{ sinceMs: firstEventMs, eventsPerSecond }] };
  }
  if (known.rates.at(-1)?.eventsPerSecond === eventsPerSecond) return known;
  const sinceMs = Math.ceil(nowMs / MINUTE_MS) * MINUTE_MS;
  return { ...known, rates: [...known.rates, { sinceMs, eventsPerSecond }] };
}

/**
 * Returns the saved state with today's options: a new rate applies from now on, a new zone gets a history of its own,
 * and a zone that is not requested is kept for later. Throws a UsageError when the file belongs to another seed.
 */
export function openState(file: string | undefined, wanted: Wanted): State {
  const known = file === undefined ? undefined : readState(file);
  if (known !== undefined && known.seed !== wanted.seed) {
    throw new UsageError([
      `state file ${file} belongs to seed "${known.seed}", not "${wanted.seed}"; give each seed its own file`,
    ]);
  }
  const planned = wanted.zones.map((id) =>
    planZone(
      known?.zones.find((zone) => zone.id === id),
      id,
      wanted,
    ),
  );
  const others = (known?.zones ?? []).filter((zone) => !wanted.zones.includes(zone.id));
  const zones = [...planned, ...others].map((zone) => ({ ...zone, rates: [...zone.rates] }));
  return { version: 1, seed: wanted.seed, zones, attacks: known?.attacks ?? [] };
}
