import { digest } from "./fingerprint.ts";

/** One span; times in epoch ms. Its ids are derived from facts, so any process can add to a spike's trace. */
export interface TraceSpan {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Null for the first span of the trace. */
  readonly parentId: string | null;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Facts that contain no addresses and no texts of requests. */
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** Receives spans. Must not throw. */
export type Trace = (spans: readonly TraceSpan[]) => void;

/** The facts that identify the trace of a spike in every process. */
export interface TracedSpike {
  readonly zoneId: number;
  readonly ruleId: string;
  /** Epoch ms. */
  readonly openedAt: number;
}

export interface TracedPage {
  readonly route: string;
  readonly entries: number;
  readonly inserted: number;
  /** Time at which the transaction ended, epoch ms. */
  readonly committedAt: number;
  readonly commitMs: number;
}

export interface SentNotification {
  readonly channel: string;
  readonly reason: string;
  readonly alertId: number;
  readonly transition: number;
  readonly attempt: number;
  /** The times at which the notification was written, sending began, and the receiver accepted it; epoch ms. */
  readonly writtenAt: number;
  readonly sendingAt: number;
  readonly acceptedAt: number;
}

function traceOf({ zoneId, ruleId, openedAt }: TracedSpike) {
  const traceId = digest(["trace", zoneId, ruleId, openedAt]);
  const idOf = (...parts: readonly (string | number)[]) => digest([traceId, ...parts]).slice(0, 16);
  return { traceId, idOf, root: idOf("spike") };
}

/** Returns the first span of the trace, from the spike's window to its detection, and the span of the detection. */
export function traceSpike(
  spike: TracedSpike,
  { windowMinutes, events, detectedAt }: { windowMinutes: number; events: number; detectedAt: number },
): TraceSpan[] {
  const { traceId, root, idOf } = traceOf(spike);
  const { zoneId, ruleId, openedAt } = spike;
  const attributes = { "longwatch.zone": zoneId, "longwatch.rule": ruleId, "longwatch.events": events };
  const eventsFrom = openedAt - windowMinutes * 60_000;
  const span = (name: string, startMs: number, endMs: number) => ({
    traceId,
    spanId: idOf(name),
    parentId: root,
    name,
    startMs,
    endMs,
    attributes,
  });
  return [
    { ...span("spike", eventsFrom, detectedAt), parentId: null },
    span("events", eventsFrom, openedAt),
    span("detect", openedAt, detectedAt),
  ];
}

/** Returns the span of a page that brought events of the spike's zone. */
export function tracePage(spike: TracedSpike, page: TracedPage): TraceSpan {
  const { traceId, root, idOf } = traceOf(spike);
  const { route, entries, inserted, committedAt, commitMs } = page;
  return {
    traceId,
    spanId: idOf("page", route, committedAt),
    parentId: root,
    name: `store page of the ${route}`,
    startMs: committedAt - commitMs,
    endMs: committedAt,
    attributes: { "longwatch.zone": spike.zoneId, "longwatch.entries": entries, "longwatch.new": inserted },
  };
}

/** Returns the spans of a notification: from its writing to its acceptance, and the attempt that was accepted. */
export function traceNotification(spike: TracedSpike, sent: SentNotification): TraceSpan[] {
  const { traceId, root, idOf } = traceOf(spike);
  const { channel, reason, alertId, transition, attempt, writtenAt, sendingAt, acceptedAt } = sent;
  const spanId = idOf("notify", channel, alertId, transition);
  const attributes = { "longwatch.channel": channel, "longwatch.reason": reason, "longwatch.alert": alertId };
  const common = { traceId, endMs: acceptedAt, attributes };
  return [
    { ...common, spanId, parentId: root, name: `notify ${channel}`, startMs: writtenAt },
    {
      ...common,
      spanId: idOf("send", channel, alertId, transition),
      parentId: spanId,
      name: "send",
      startMs: sendingAt,
      attributes: { ...attributes, "longwatch.attempt": attempt },
    },
  ];
}
