import { z } from "zod";
import { CHANNELS } from "./registry.ts";

type SchemasOf<Definitions extends readonly { readonly schema: unknown }[]> = {
  readonly [Index in keyof Definitions]: Definitions[Index]["schema"];
};

const schemas = CHANNELS.map(({ schema }) => schema) as unknown as SchemasOf<typeof CHANNELS>;

/**
 * One channel as a configuration file holds it; `kind` says which. Unknown fields are mistakes; credentials and the
 * addresses that are ones come out as Secret. What an address may be is checked when the channel is opened.
 */
export const channelConfig = z.discriminatedUnion("kind", schemas);

export type ChannelConfig = z.infer<typeof channelConfig>;
