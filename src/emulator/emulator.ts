import { once } from "node:events";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import { z } from "zod";
import { type Clock, systemClock } from "#lib/clock.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { MINUTE_MS } from "#lib/units.ts";
import {
  createDrivenClock,
  createOracle,
  createRequestLog,
  type EmulatorContext,
  type RequestLog,
  Switches,
} from "./emulator-context.ts";
import { createFaults, Fault, type FaultInput } from "./faults.ts";
import { createResources } from "./resources.ts";
import { createRuleDays } from "./rule-days.ts";
import { createEmulatorServer } from "./server.ts";
import { Attack, parseAttack } from "./traffic/attack.ts";
import { createTraffic, type ZonePlan } from "./traffic/traffic.ts";
import { createZoneStore, HORIZON_MS } from "./zone-store.ts";

export interface EmulatorOptions {
  /** 0, the default, chooses a free port. */
  readonly port?: number;
  readonly host?: string;
  readonly zones?: readonly number[];
  readonly seed?: string;
  /** Average over all zones together. */
  readonly eventsPerSecond?: number;
  /** 72 begins a quarter of an hour inside the retention of 72 hours; more than 72 begins before it. */
  readonly historyHours?: number;
  /** Scripts such as `zone=101,rule=942100,start=+60s,duration=10m,rate=40/s`. */
  readonly attacks?: readonly string[];
  readonly faults?: readonly FaultInput[];
  readonly switches?: Partial<Switches>;
  /** Shorthands of the switches of the same name. */
  readonly pageSize?: number;
  readonly order?: "oldest" | "newest";
  /** Share of the events that become visible minutes after their timestamp, and the longest such delay. */
  readonly lateShare?: number;
  readonly maxLatenessMs?: number;
  readonly clock?: Clock;
  readonly accessKey?: string;
  /** File for the emulator's past. Without a file the past ends with the process. */
  readonly stateFile?: string;
}

export interface Emulator {
  readonly url: string;
  readonly port: number;
  readonly accessKey: string;
  now(): number;
  /** Stops the clock at a time; `null` makes it follow the base clock again. */
  setNow(timeMs: number | null): void;
  advance(ms: number): void;
  addFault(fault: FaultInput): void;
  clearFaults(): void;
  /** Changes only the switches that are named. */
  setSwitches(switches: Partial<Switches>): void;
  /** Accepts the same script as the command line. Returns the attack with its times. */
  addAttack(script: string): Attack;
  requests(): ReturnType<RequestLog["show"]>;
  /** Closes every connection at once; idempotent. */
  close(): Promise<void>;
}

export const EMULATOR_DEFAULTS = {
  host: "127.0.0.1",
  zones: [101, 102],
  seed: "1",
  eventsPerSecond: 0.9,
  historyHours: 72,
  lateShare: 0.02,
  maxLatenessMs: 12 * 60_000,
  accessKey: "emulator-access-key",
} as const;

function refuse(mistakes: readonly string[]): void {
  if (mistakes.length > 0) throw new UsageError(mistakes);
}

function readAttack(script: string, zones: readonly number[], nowMs: number): Attack {
  const parsed = parseAttack(script, nowMs);
  if ("mistakes" in parsed) throw new UsageError(parsed.mistakes);
  if (!zones.includes(parsed.attack.zone))
    throw new UsageError([
      `attack "${script}": zone ${parsed.attack.zone} is not one of ${zones.join(", ")}`,
    ]);
  return parsed.attack;
}

/**
 * Starts the platform on a port of this machine: eleven operations over seeded traffic, and the admin routes below
 * `/_emulator`. When the promise resolves, the history is drawn and the port listens. Mistakes in the options are a
 * UsageError that lists them all.
 */
export async function createEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { host, zones, seed, eventsPerSecond, historyHours, lateShare, maxLatenessMs, accessKey, ...given } =
    { ...EMULATOR_DEFAULTS, ...options };
  const clock = createDrivenClock(given.clock ?? systemClock);
  const nowMs = clock.now();
  const { pageSize, order } = given;
  const switches = Switches.parse({
    ...given.switches,
    ...(pageSize === undefined ? {} : { pageSize }),
    ...(order === undefined ? {} : { order }),
  });

  const scripted = (given.attacks ?? []).map((script) => {
    try {
      return { attack: readAttack(script, zones, nowMs) };
    } catch (thrown) {
      if (thrown instanceof UsageError) return { mistakes: thrown.mistakes };
      throw thrown;
    }
  });
  refuse(scripted.flatMap((entry) => entry.mistakes ?? []));

  const state = openState(given.stateFile, { seed, zones, eventsPerSecond, historyHours, nowMs });
  const traffic = createTraffic({ seed, lateness: { share: lateShare, maxMs: maxLatenessMs } });
  for (const attack of [...state.attacks, ...scripted.flatMap((entry) => entry.attack ?? [])])
    traffic.addAttack(attack);
  const remember = () => saveState(given.stateFile, { ...state, attacks: [...traffic.attacks()] });
  remember();

  const served = state.zones.filter((plan) => zones.includes(plan.id));
  const context: EmulatorContext = {
    seed,
    accessKey,
    traffic,
    switches,
    oracle: createOracle(traffic),
    ruleDays: createRuleDays(seed, traffic, historyHours * 3_600_000),
    stores: new Map(served.map((plan) => [plan.id, createZoneStore(plan, traffic)])),
    resources: createResources(seed, accessKey, zones),
    faults: createFaults(seed),
    listings: { passes: new Map(), tokens: new Map() },
    now: clock.now,
  };
  for (const fault of given.faults ?? []) context.faults.add(Fault.parse(fault));
  for (const store of context.stores.values()) store.extendTo(nowMs);

  const addAttack = (attack: Attack) => {
    if (!traffic.addAttack(attack)) return;
    // An outage delays earlier events that were due after its start.
    context.stores.get(attack.zone)?.redrawFrom(attack.startMs - maxLatenessMs);
    context.oracle.forget();
    remember();
  };
  const requests = createRequestLog();
  const closing = new AbortController();
  const server = createEmulatorServer(context, { requests, clock, addAttack }, closing.signal);
  server.listen(given.port ?? 0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    port,
    accessKey,
    now: clock.now,
    setNow: (timeMs) => clock.set(timeMs),
    advance: (ms) => clock.advance(ms),
    addFault: (fault) => void context.faults.add(Fault.parse(fault)),
    clearFaults: () => context.faults.clear(),
    setSwitches(changed) {
      context.switches = Switches.parse({ ...context.switches, ...changed });
    },
    addAttack(script) {
      const attack = readAttack(script, zones, clock.now());
      addAttack(attack);
      return attack;
    },
    requests: requests.show,
    async close() {
      closing.abort();
      const closed = server.listening ? once(server, "close") : undefined;
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

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
function openState(file: string | undefined, wanted: Wanted): State {
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
