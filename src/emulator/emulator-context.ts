/** What all routes share: the clock, the switches and the log of requests. */

import { setImmediate as yieldToOthers } from "node:timers/promises";
import { z } from "zod";
import type { Clock } from "#lib/clock.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { Fault, Faults } from "./faults.ts";
import type { Resources } from "./resources.ts";
import type { RuleDays } from "./rule-days.ts";
import type { Draft } from "./traffic/draft.ts";
import type { Traffic, ZonePlan } from "./traffic/traffic.ts";
import { HORIZON_MS, type ZoneStore } from "./zone-store.ts";

/** The eleven operations, with their names in faults and the request log. */
export const OPERATIONS = [
  "list-api-keys",
  "set-hostname-key-type",
  "check-dns-zone",
  "add-container",
  "update-application",
  "delete-volume-instances",
  "search-event-logs",
  "export-event-logs",
  "list-event-logs",
  "recommend-rule",
  "rule-metrics",
] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * One switch for each behaviour of the platform that is unknown or differs between zones. The observed behaviour is
 * the default.
 */
export const Switches = z.strictObject({
  /** The literal `start` as first token. */
  startToken: z.enum(["accept", "reject"]).default("accept"),
  /** The token of the last page. */
  lastToken: z.enum(["empty", "null"]).default("empty"),
  /** `rows` of a grouped search, `groups` of a flat one. */
  emptySide: z.enum(["null", "list"]).default("null"),
  /** The status block of a success: null, left out, or the all-default block with `success: false`. */
  errorResponse: z.enum(["null", "absent", "default"]).default("null"),
  /** Keys of the 28-day overview. */
  metricDays: z.enum(["dd-MM-yyyy", "iso"]).default("dd-MM-yyyy"),
  /** Success status of the key type change. */
  keyTypeStatus: z.enum(["200", "204"]).default("200"),
  /** A bad key on the key list: 401, or the 500 with the text of an authorisation failure. */
  apiKeyRefusal: z.enum(["401", "500"]).default("401"),
  /** Error bodies of the container operations. */
  containerErrors: z.enum(["object", "array", "string"]).default("object"),
  /** The answer of the AI recommendation. */
  advice: z
    .enum(["ok", "limit-reached", "not-enough-data", "model-failure", "null-text", "empty-text"])
    .default("ok"),
  adviceLatencyMs: z.int().min(0).max(600_000).default(0),
  /** A token older than this is refused; 0 means never. */
  tokenLifetimeMs: z.int().min(0).default(0),
  /** Largest page of the date-paged list. */
  pageSize: z.int().min(1).max(100_000).default(1_000),
  order: z.enum(["oldest", "newest"]).default("oldest"),
  /** The features that the date-paged list shows. The search shows all of them. */
  listFeatures: z.enum(["all", "waf"]).default("all"),
});
export type Switches = z.infer<typeof Switches>;

const KEPT = 500;

interface RequestEntry {
  readonly at: number;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** 0 before the answer, or if the connection was cut before one. */
  status: number;
  readonly faults: readonly string[];
}

export type RequestLog = ReturnType<typeof createRequestLog>;

/** Returns a log of requests: counts since the start, and the last requests. */
export function createRequestLog() {
  const counts = new Map<Operation, number>();
  const last: RequestEntry[] = [];
  return {
    add(entry: RequestEntry): RequestEntry {
      counts.set(entry.operation, (counts.get(entry.operation) ?? 0) + 1);
      last.push(entry);
      if (last.length > KEPT) last.shift();
      return entry;
    },
    show: () => ({ counts: Object.fromEntries(counts), last: [...last] }),
  };
}

/** Returns a clock that tests can stop, set and move. It follows its base until they do. */
export function createDrivenClock(base: Clock) {
  let offsetMs = 0;
  let stoppedAt: number | undefined;
  return {
    now: () => stoppedAt ?? base() + offsetMs,
    /** Stops the clock at a time; `null` makes it follow the base clock again. */
    set(timeMs: number | null): void {
      stoppedAt = timeMs ?? undefined;
      offsetMs = 0;
    },
    /** Advances the clock. A stopped clock stays stopped. */
    advance(ms: number): void {
      if (stoppedAt === undefined) offsetMs += ms;
      else stoppedAt += ms;
    },
  };
}

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

const MINUTES_PER_TURN = 30;
/** Events and minutes that are kept between two readings: all of a small zone, and little memory of a large one. */
const MAX_KEPT = 20_000;

/** Returns whether the platform has shown this event by `nowMs`: it became visible before the platform forgot it. */
function wasShown(
  traffic: Traffic,
  plan: ZonePlan,
  event: Pick<Draft, "at" | "visibleAt" | "source">,
  nowMs: number,
): boolean {
  const shownAt = Math.max(event.visibleAt, traffic.knownSinceMs(plan, event.source));
  return shownAt <= nowMs && shownAt < event.at + HORIZON_MS;
}

/**
 * Returns the oracle of everything that a zone ever showed. Time without a running emulator counts, because the real
 * platform never stops.
 */
export function createOracle(traffic: Traffic) {
  const countedBefore = new Map<number, { minute: number; events: number }>();

  const kept = new Map<ZonePlan, Map<number, Draft[]>>();
  let keptSize = 0;

  function drawMinute(plan: ZonePlan, minute: number): Draft[] {
    const minutes = kept.get(plan) ?? new Map<number, Draft[]>();
    const known = minutes.get(minute);
    if (known !== undefined) return known;
    const drawn = traffic.minute(plan, minute);
    if (keptSize + drawn.length + 1 > MAX_KEPT) return drawn;
    keptSize += drawn.length + 1;
    kept.set(plan, minutes.set(minute, drawn));
    return drawn;
  }

  /** Yields every event ever shown, oldest first, a minute at a time, drawn again from the seed. */
  async function* everShown(
    store: ZoneStore,
    nowMs: number,
    endMinute = Math.floor(nowMs / MINUTE_MS) + 1,
  ): AsyncGenerator<Draft[]> {
    const { plan } = store;
    for (let minute = Math.floor(store.earliestMs() / MINUTE_MS); minute < endMinute; minute++) {
      const shown = drawMinute(plan, minute).filter((draft) => wasShown(traffic, plan, draft, nowMs));
      if (shown.length > 0) yield shown;
      if (minute % MINUTES_PER_TURN === 0) await yieldToOthers();
    }
  }

  /** Counts the events that the store has already dropped, once per position. */
  async function countDropped(store: ZoneStore, nowMs: number): Promise<number> {
    const minute = store.firstMinute();
    const known = countedBefore.get(store.plan.id);
    if (known?.minute === minute) return known.events;
    let events = 0;
    for await (const drafts of everShown(store, nowMs, minute)) events += drafts.length;
    countedBefore.set(store.plan.id, { minute, events });
    return events;
  }

  return {
    everShown,
    /** Returns the number of events that `everShown` would yield. */
    async count(store: ZoneStore, nowMs: number): Promise<number> {
      let events = await countDropped(store, nowMs);
      const columns = store.columns();
      for (let row = 0; row < columns.length(); row++) {
        const event = {
          at: columns.at(row),
          visibleAt: columns.visibleAt(row),
          source: columns.key(row).source,
        };
        if (wasShown(traffic, store.plan, event, nowMs)) events++;
      }
      return events;
    },
    /** Call after an attack was added, because earlier counts and minutes may be wrong then. */
    forget(): void {
      countedBefore.clear();
      kept.clear();
      keptSize = 0;
    },
  };
}
