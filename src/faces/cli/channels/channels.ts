import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { channelOperations } from "#operations/deliveries/channels.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import type { StoreIo } from "../store/store-command.ts";
import { SUMMARIES } from "../summaries.ts";
import { testChannelCommand } from "./test-channel.ts";

/** `longwatch channels`: its operations, and a test that opens the channel with the settings of this environment. */
export function channelsCommand(
  readConfig: () => Config,
  readServiceConfig: () => Config,
  io: StoreIo = createProcessIo(),
): Command {
  const description = SUMMARIES.channels;
  const others = [testChannelCommand(readServiceConfig, io)];
  return subjectCommand("channels", description, channelOperations, readConfig, io, others);
}
