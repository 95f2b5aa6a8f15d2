/** The commands on channels. */
import type { Command } from "commander";
import { sampleLinks } from "#alerts/rules/message/links.ts";
import { type Config, zonesOf } from "#config/config.ts";
import { channelOperations, testChannel } from "#delivery/operations/channels.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { openNotifier } from "#delivery/receivers/channels/registry.ts";
import { type Clock, systemClock } from "#lib/clock.ts";
import { OWN_COMMAND } from "#lib/process.ts";
import { toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { describeFile } from "../config/config-table.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

/** `longwatch channels`: its operations, and a test that opens the channel with the settings of this environment. */
export function channelsCommand(
  readConfig: () => Config,
  readServiceConfig: () => Config,
  io: StoreIo = createProcessIo(),
): Command {
  const others = [testChannelCommand(readServiceConfig, io)];
  return subjectCommand("channels", "", channelOperations, readConfig, io, others);
}

const TEST_HELP = `
Sends one test message. If the receiver keeps incidents open, the command also resolves the test incident. The message
is sent once, from this machine and without the outbox, with the settings that channels list shows. It shows the first five links
of the configuration file, filled in for a sample alert; the command prints all of them. Exit code 1 if the receiver
did not accept the message.

Examples:
  npm run -s longwatch -- channels test webhook
  npm run -s longwatch -- channels test slack --json`;

/** The zone of the sample links if no zone is configured. */
const SAMPLE_ZONE = 101;

interface Flags {
  readonly json?: true;
}

/** `longwatch channels test`: opens a channel with the settings of this environment and sends a message. */
function testChannelCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("test", TEST_HELP, io, "Send a test message on one channel.")
    .usage("[options] <name>")
    .argument("[name]", "the channel's name")
    .option("--json", "print the result as JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [typed]) => {
        const config = readConfig();
        // With --json, a terminal channel prints to stderr, so that stdout holds only the document.
        const terminal = flags.json === true ? io.stderr : io.stdout;
        const notifiers = open(config, terminal, systemClock);
        const notifier = notifiers.get(typed ?? "");
        const known = [...notifiers.keys()].join(", ");
        if (notifier === undefined)
          read.mistakes.push(
            `${typed === undefined ? "the name is missing; it" : `"${typed}"`} must be a channel: ${known}. ${describeFile(config)}`,
          );
        read.finish();
        if (notifier === undefined) return;
        const links = listSamples(config, systemClock());
        const { isDelivered, text, ...facts } = await testChannel(notifier, systemClock(), links);
        const listed = links.map(({ title, url }) => `  ${toLine(title, 60)}: ${url}\n`).join("");
        if (flags.json === true)
          await writeJson(io.stdout, {
            channel: notifier.name,
            isDelivered,
            text,
            ...facts,
            links,
            configFile: config.file,
          });
        else if (isDelivered)
          await writeOut(io.stdout, `channel ${notifier.name}: ${text}\n${listed}${describeFile(config)}\n`);
        else io.stderr.write(`longwatch channels test: channel ${notifier.name}: ${text}\n`);
        if (!isDelivered) io.setExitCode(1);
      }),
    );
}

function listSamples(config: Config, nowMs: number): AlertMessage["links"] {
  return sampleLinks(config.alerting.routing.links, zonesOf(config)[0] ?? SAMPLE_ZONE, nowMs);
}

/** Opens the channels as the service does. Throws on wrong settings, before anything is sent. */
function open(
  { alerting, channels }: Config,
  terminal: StoreIo["stdout"] | StoreIo["stderr"],
  clock: Clock,
): Map<string, Notifier> {
  const stream = {
    write: (text: string, done: (error?: Error | null) => void) => terminal.write(text, done),
    isTTY: terminal.isTTY === true,
    ...("columns" in terminal && typeof terminal.columns === "number" ? { columns: terminal.columns } : {}),
    hasColors: () => ("hasColors" in terminal ? (terminal.hasColors?.() ?? true) : true),
    command: OWN_COMMAND,
  };
  const context = { terminal: stream, clock, network: { allowPrivateNetworks: channels.allowPrivate } };
  return new Map(alerting.channels.map((channel) => [channel.name, openNotifier(channel, context)]));
}
