import { z } from "zod";
import { CHANNELS } from "./registry.ts";

type SchemasOf<Definitions extends readonly { readonly schema: unknown }[]> = {
  readonly [Index in keyof Definitions]: Definitions[Index]["schema"];
};

const schemas = CHANNELS.map(({ schema }) => schema) as unknown as SchemasOf<typeof CHANNELS>;

/**
 * One channel in a configuration file; `kind` selects the schema. Unknown fields are mistakes. Credentials, and
 * addresses that contain one, are parsed to Secret. Addresses are checked when the channel is opened.
 */
export const channelConfig = z.discriminatedUnion("kind", schemas);

export type ChannelConfig = z.infer<typeof channelConfig>;
