import type { Fault, Faults } from "./faults.ts";
import type { Operation } from "./operations.ts";
import type { createOracle } from "./oracle.ts";
import type { Resources } from "./resources.ts";
import type { RuleDays } from "./rule-days.ts";
import type { Switches } from "./switches.ts";
import type { Traffic } from "./traffic/traffic.ts";
import type { ZoneStore } from "./zone-store.ts";

/** The state that every route of the emulator may use. One per emulator. */
export interface EmulatorContext {
  readonly seed: string;
  readonly accessKey: string;
  readonly traffic: Traffic;
  readonly oracle: ReturnType<typeof createOracle>;
  readonly ruleDays: RuleDays;
  readonly stores: ReadonlyMap<number, ZoneStore>;
  readonly resources: Resources;
  readonly faults: Faults;
  readonly listings: Listings;
  switches: Switches;
  now(): number;
}

/** Passes over the date-paged list: how many began per zone and day, and the tokens that each returned. */
interface Listings {
  readonly passes: Map<string, number>;
  readonly tokens: Map<string, string[]>;
}

/** One request as a route sees it: path parameters decoded, body as received. */
export interface Call {
  readonly operation: Operation;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly contentType: string;
  /** `""` without the header. */
  readonly contentEncoding: string;
  readonly body: Buffer;
  /** Faults of the list operation that apply to this request. */
  readonly faults: readonly Fault[];
  /** Aborts when the client disconnects or the emulator closes. */
  readonly signal: AbortSignal;
}
