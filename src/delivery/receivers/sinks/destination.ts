/** Destinations and the sinks that send to them. */
import type { Filter } from "#model/fields.ts";
import type { EventFormat, FORWARD_KINDS, ForwardKind } from "#model/kinds.ts";
import { type SenderContext, toNetwork } from "../channel-definition.ts";
import { azureMonitor } from "./azure-monitor.ts";
import { elastic } from "./elastic.ts";
import { file } from "./file.ts";
import { kafka } from "./kafka.ts";
import { loki } from "./loki.ts";
import { otlp } from "./otlp.ts";
import type { AnySink, Sink } from "./sink.ts";
import { splunk } from "./splunk.ts";
import { syslog } from "./syslog.ts";
import { webhook } from "./webhook.ts";

/** Events that a destination gets, and their form. */
interface DestinationFacts {
  /** Name in the configuration, in cursors and in metrics. */
  readonly name: string;
  readonly kind: ForwardKind;
  /** Null: every zone. */
  readonly zones: readonly number[] | null;
  /** All must match; none is by the method. */
  readonly where: readonly Filter[];
  readonly format: EventFormat;
  readonly batchEvents: number;
  /** How long before its first run a destination begins. 0: its first run. Null: all kept events. */
  readonly startAgoMs: number | null;
}

/** One entry of `forward` in the configuration file. */
export interface DestinationConfig extends DestinationFacts {
  /** The settings of the kind, parsed by its schema, with secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
}

export interface Destination extends DestinationFacts {
  readonly sink: Sink;
}

/**
 * Opens the sink of a destination, which neither connects nor writes yet. The entry's own settings override those of
 * `network`.
 * @throws {UsageError} listing every mistake of its addresses and secrets
 */
export function openSink(
  { name, kind, settings }: Pick<DestinationConfig, "name" | "kind" | "settings">,
  { network, ...context }: SenderContext,
): Sink {
  const definition = findSink(kind);
  if (definition === undefined) throw new Error(`There is no kind of sink named ${kind}.`);
  const options = { ...settings, ...context, name, network: toNetwork(settings, network) };
  return definition.open(options);
}

/**
 * Opens configured destinations.
 * @throws {UsageError} as `openSink`
 */
export function openDestinations(
  configs: readonly DestinationConfig[],
  context: SenderContext,
): readonly Destination[] {
  return configs.map((config) => {
    const { settings: _, ...facts } = config;
    return { ...facts, sink: openSink(config, context) };
  });
}

type OfKinds<Kinds extends readonly string[]> = {
  readonly [At in keyof Kinds]: { readonly kind: Kinds[At] };
};

/** The definition of every kind of sink, in the order of `FORWARD_KINDS`. */
export const SINKS = [
  splunk,
  elastic,
  otlp,
  loki,
  azureMonitor,
  kafka,
  syslog,
  webhook,
  file,
] as const satisfies OfKinds<typeof FORWARD_KINDS>;

/** Returns the definition of a kind of sink; undefined for an unknown kind. */
export function findSink(kind: string): AnySink | undefined {
  return (SINKS as readonly AnySink[]).find((sink) => sink.kind === kind);
}
