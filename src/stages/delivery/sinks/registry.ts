import type { FORWARD_KINDS } from "#model/kinds.ts";
import { elastic } from "./elastic.ts";
import { file } from "./file.ts";
import { otlp } from "./otlp.ts";
import type { AnySink } from "./sink-definition.ts";
import { splunk } from "./splunk.ts";
import { webhook } from "./webhook.ts";

type OfKinds<Kinds extends readonly string[]> = {
  readonly [At in keyof Kinds]: { readonly kind: Kinds[At] };
};

/** The definition of every kind of sink, in the order of `FORWARD_KINDS`. */
export const SINKS = [splunk, elastic, otlp, webhook, file] as const satisfies OfKinds<typeof FORWARD_KINDS>;

/** Returns the definition of a kind of sink; undefined for an unknown kind. */
export function findSink(kind: string): AnySink | undefined {
  return (SINKS as readonly AnySink[]).find((sink) => sink.kind === kind);
}
