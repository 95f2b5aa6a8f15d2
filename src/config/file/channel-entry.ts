import { CHANNELS } from "#stages/delivery/channels/registry.ts";
import { toEntryUnion, toFieldsByKind } from "./entry-fields.ts";

/** The settings of each kind of channel. The channel's name is the key of its entry in the file. */
export const channelFields = toFieldsByKind(CHANNELS);

/** One channel in the file. */
export const channelEntry = toEntryUnion(channelFields);
