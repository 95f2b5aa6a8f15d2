import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { Config } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import type { Database } from "#db/client.ts";
import { readOpenedSpikes } from "#db/detection/feed-spikes.ts";
import type { Clock } from "#lib/clock.ts";
import { toError, UsageError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type Trace, type TracedPage, type TraceSpan, tracePage } from "#model/spike-trace.ts";
import type { IngestObserver } from "#stages/ingest/ingest-observer.ts";

const PACKAGE = "@opentelemetry/exporter-trace-otlp-http";
/** Time limit of one export, short because a stop of the service waits for the export. */
const TIMEOUT_MS = 1_500;
const SAMPLED = 1;
const INTERNAL = 0;
const UNSET = 0;

type Exporter = Pick<OTLPTraceExporter, "export" | "shutdown">;
type Exported = Parameters<OTLPTraceExporter["export"]>[0][number];

/**
 * Returns a function that sends spans to the collector of OTEL_EXPORTER_OTLP_ENDPOINT; null without a collector. The
 * exporter's package, which Longwatch does not install, is loaded only if there is a collector. Traces are lost while
 * the collector is down; nothing waits for them.
 * @throws {UsageError} if the package is missing
 */
export async function openTracing(
  { traceEndpoint }: Pick<Config, "traceEndpoint">,
  log: Pick<Log, "warn">,
  stack: StopStack,
): Promise<Trace | null> {
  if (traceEndpoint === null) return null;
  const exporter = await openExporter(`${traceEndpoint.replace(/\/+$/, "")}/v1/traces`);
  stack.defer("traces", () => exporter.shutdown());
  let isFailing = false;
  return (spans) =>
    exporter.export(spans.map(toExported), ({ error }) => {
      if (error !== undefined && !isFailing) log.warn({ err: toError(error) }, "traces not exported");
      isFailing = error !== undefined;
    });
}

async function openExporter(url: string): Promise<Exporter> {
  try {
    const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
    return new OTLPTraceExporter({ url, timeoutMillis: TIMEOUT_MS });
  } catch (thrown) {
    const { code } = toError(thrown) as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND") throw thrown;
    throw new UsageError([
      `OTEL_EXPORTER_OTLP_ENDPOINT: needs the package ${PACKAGE}: npm install --no-save ${PACKAGE}`,
    ]);
  }
}

function toExported(span: TraceSpan): Exported {
  const { traceId, spanId, parentId, name, startMs, endMs, attributes } = span;
  const context = (id: string) => ({ traceId, spanId: id, traceFlags: SAMPLED });
  return {
    name,
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the enum would load the package
    kind: INTERNAL,
    spanContext: () => context(spanId),
    ...(parentId === null ? {} : { parentSpanContext: context(parentId) }),
    startTime: toHrTime(startMs),
    endTime: toHrTime(endMs),
    duration: toHrTime(endMs - startMs),
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- as above
    status: { code: UNSET },
    attributes: { ...attributes },
    links: [],
    events: [],
    ended: true,
    resource: {
      attributes: { "service.name": "longwatch", "service.version": readVersion() },
      merge: (other) => other ?? raise(),
      getRawAttributes: () => [],
    },
    instrumentationScope: { name: "longwatch" },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function raise(): never {
  throw new Error("the resource of a span is never merged");
}

/** Returns seconds and nanoseconds. */
function toHrTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}

const LOOK_EVERY_MS = 10_000;
/** The longest window of a spike, plus time for its detection. */
const KEPT_MS = 75 * MINUTE_MS;
const MOST_KEPT = 5_000;
/** Number of pages before a spike's detection that its trace contains. */
const MOST_PAGES = 20;

interface PageTracingParts {
  readonly database: Pick<Database, "db">;
  readonly clock: Clock;
  readonly log: Pick<Log, "debug">;
  readonly trace: Trace;
  /** Default 10 s. */
  readonly lookEveryMs?: number;
}

/**
 * Returns the same observer, which also remembers pages with new events. After a spike has opened, each process that
 * stored pages of its zone adds them to the spike's trace.
 */
export function tracePages(
  observer: IngestObserver,
  { database, clock, log, trace, lookEveryMs = LOOK_EVERY_MS }: PageTracingParts,
  stack: StopStack,
): IngestObserver {
  let pages: (TracedPage & { readonly zoneId: number })[] = [];
  let lookedAt = clock();
  const traced = new Set<number>();

  async function look(): Promise<void> {
    const now = clock();
    pages = pages.filter(({ committedAt }) => committedAt > now - KEPT_MS).slice(-MOST_KEPT);
    // A spike's first minute may end some minutes before the spike is found.
    const spikes = await readOpenedSpikes(database.db, lookedAt - KEPT_MS);
    for (const spike of spikes.filter(({ id }) => !traced.has(id))) {
      traced.add(spike.id);
      const from = spike.openedAt - spike.windowMinutes * MINUTE_MS;
      const own = pages.filter(
        ({ zoneId, committedAt }) => zoneId === spike.zoneId && committedAt >= from && committedAt <= now,
      );
      if (own.length > 0) trace(own.slice(-MOST_PAGES).map((page) => tracePage(spike, page)));
    }
    const known = new Set(spikes.map(({ id }) => id));
    for (const id of traced) if (!known.has(id)) traced.delete(id);
    lookedAt = now;
  }

  const timer = setInterval(() => {
    look().catch((thrown: unknown) => log.debug({ err: thrown }, "pages not traced"));
  }, lookEveryMs);
  stack.defer("page traces", () => clearInterval(timer));
  return {
    pageStored(facts) {
      observer.pageStored(facts);
      const { zoneId, route, entries, inserted, commitMs } = facts;
      if (inserted > 0) pages.push({ zoneId, route, entries, inserted, commitMs, committedAt: clock() });
    },
  };
}
