/** What a sink is. */
import { z } from "zod";
import type { Dimension } from "#model/kinds.ts";
import type { SenderOptions } from "../channel-definition.ts";

/** An event for a receiver. */
export interface ForwardedEvent {
  readonly zoneId: number;
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  /** JSON text of one object: the event in the destination's format. */
  readonly body: string;
  /** Values for receivers that keep some beside the event. Only `action` and `ruleId` are the platform's own words. */
  readonly fields: Readonly<Record<Dimension, string>>;
  /** True if the receiver has acknowledged the event with other values. A receiver that stores by id replaces it. */
  readonly isRevised: boolean;
}

interface SendBatchOptions {
  /** Equal for every attempt with the same events, so that a receiver can drop a batch that it has. */
  readonly batchId: string;
  readonly signal: AbortSignal;
}

/** An answer that names single events by their positions in the batch. All other events are acknowledged. */
export interface BatchAnswer {
  /** Events that the receiver will never accept as they are, each with its reason. */
  readonly refused: readonly { readonly index: number; readonly reason: string }[];
  /** Events to send again later. */
  readonly postponed: readonly number[];
  /** How long the receiver wants to be left alone. Null: it did not say. */
  readonly waitMs: number | null;
}

/** Events that a receiver has of one hour of a zone. */
interface CountedHour {
  readonly zoneId: number;
  /** Epoch ms. */
  readonly startsAt: number;
}

/** A receiver of events. */
export interface Sink {
  /**
   * Sends events and resolves when the receiver has acknowledged what the answer does not name.
   * @throws {DeliveryError} if the receiver has acknowledged nothing, or if that is not known
   */
  send(events: readonly ForwardedEvent[], options: SendBatchOptions): Promise<BatchAnswer>;
  /**
   * Returns how many events of an hour the receiver has. Null: it cannot be asked.
   * @throws {DeliveryError}
   */
  readonly count: ((hour: CountedHour, signal: AbortSignal) => Promise<number>) | null;
}

/** Returns an id by which a receiver can recognize an event that it has, in all zones. */
export function toEventId({ zoneId, logId }: Pick<ForwardedEvent, "zoneId" | "logId">): string {
  return `${zoneId}-${logId}`;
}

/** Returns nanoseconds as text: they are beyond the whole numbers of JSON. */
export function toNanoseconds(atMs: number): string {
  return `${Math.round(atMs)}000000`;
}

/** Returns JSON without line ends, which can only be between its tokens, because strings escape theirs. */
export function toSingleLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, " ");
}

/** One kind of sink. Its fields are those of a channel's definition. */
interface SinkDefinition<Kind extends string = string, Settings extends z.ZodRawShape = z.ZodRawShape> {
  readonly kind: Kind;
  readonly settings: Settings;
  readonly example: z.input<z.ZodObject<Settings>>;
  /** When an event counts as acknowledged: the end of a sentence that begins with "acknowledged when". */
  readonly acknowledgedWhen: string;
  /**
   * Opens the sink, which neither connects nor writes yet.
   * @throws {UsageError} listing every mistake of its addresses and secrets
   */
  open(options: SenderOptions<Settings>): Sink;
}

/** Any kind of sink. The caller has parsed the settings before opening the sink. */
export interface AnySink extends Omit<SinkDefinition, "open"> {
  open(options: { readonly name: string }): Sink;
}

export function defineSink<Kind extends string, Settings extends z.ZodRawShape>(
  definition: SinkDefinition<Kind, Settings>,
): SinkDefinition<Kind, Settings> {
  return definition;
}
