import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { Config } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { toError, UsageError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import type { Trace, TraceSpan } from "#model/spike-trace.ts";

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
