import { z } from "zod";
import type { SenderOptions } from "../channel-definition.ts";
import type { Sink } from "./sink.ts";

/** One kind of sink. Its fields are those of a channel's definition. */
export interface SinkDefinition<
  Kind extends string = string,
  Settings extends z.ZodRawShape = z.ZodRawShape,
> {
  readonly kind: Kind;
  readonly settings: Settings;
  readonly example: z.input<z.ZodObject<Settings>>;
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
