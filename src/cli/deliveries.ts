import type { Command } from "commander";
import { readChannelStandings } from "../../db/queries/channel-states.ts";
import {
  DELIVERY_STATES,
  type Delivery,
  type DeliveryState,
  listDeliveries,
  replayDeliveries,
} from "../../db/queries/deliveries.ts";
import type { Config } from "../config.ts";
import { describeCircuit } from "../delivery/circuit.ts";
import { shortenText } from "../edge/escape-text.ts";
import { UsageError } from "../errors.ts";
import { createProcessIo, writeOut } from "./edge/edge-io.ts";
import type { FlagReader } from "./edge/flag-reader.ts";
import { writeJson } from "./edge/write-json.ts";
import { withStore } from "./open-store.ts";
import { many } from "./progress-bar.ts";
import { showTime } from "./read-span.ts";
import { requireChannel } from "./require-known.ts";
import { commandGroup, type StoreIo, storeAction, storeCommand } from "./store-command.ts";

const MOST = 10_000;
const DEFAULT_LIMIT = 50;
const MAX_TEXT_CHARS = 160;

const LIST_HELP = `
First every channel: whether it delivers, what waits and what is dead (--json names its circuit: closed, open, half-open or
disabled). Then the newest deliveries. States: pending, sending, delivered, dead (given up, to be replayed), needless (said by another message).
Reads the database only. Exit code 0; 2 for a channel that is neither configured nor was ever sent to.

Examples:
  npm run -s longwatch -- deliveries list
  npm run -s longwatch -- deliveries list --state dead --channel slack
  npm run -s longwatch -- deliveries list --state pending --json`;

const REPLAY_HELP = `
A replayed delivery keeps its key, so a receiver that has it after all drops it. What a later message has overtaken on the
same channel stays dead. Exit code 0; 2 when there is no such delivery or channel, or the
delivery is not dead.

Examples:
  npm run -s longwatch -- deliveries replay 4711
  npm run -s longwatch -- deliveries replay --channel slack`;

/** `longwatch deliveries`: what the channels were sent, what waits, what is dead, and another try for that. */
export function deliveriesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("deliveries", "Show what was sent to the channels, and replay what was given up.", io, [
    listCommand(readConfig, io),
    replayCommand(readConfig, io),
  ]);
}

interface ListFlags {
  readonly state?: string;
  readonly channel?: string;
  readonly limit?: string;
  readonly json?: true;
}

function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List deliveries, newest first.", LIST_HELP, io)
    .option("--state <state>", `one of ${DELIVERY_STATES.join(", ")} (default: all)`)
    .option("--channel <name>", "one channel (default: all)")
    .option("--limit <n>", `at most so many (default: ${DEFAULT_LIMIT})`)
    .option("--json", "channels and deliveries, as JSON")
    .action(
      storeAction<ListFlags>(io, async (flags, read) => {
        const { channel } = flags;
        const asked = { state: readState(read, flags.state), channel, limit: readLimit(read, flags.limit) };
        read.finish();
        const config = readConfig();
        const found = await withStore(config, async ({ db }) => {
          if (channel !== undefined) await requireChannel(db, config, channel);
          return { standings: await readChannelStandings(db), deliveries: await listDeliveries(db, asked) };
        });
        const { deliveries } = found;
        const channels = found.standings
          .filter((one) => channel === undefined || one.channel === channel)
          .map(({ nowMs, ...one }) => ({ ...one, circuit: describeCircuit(one, nowMs) }));
        if (flags.json === true) await writeJson(io.stdout, { channels, deliveries });
        else
          await writeOut(io.stdout, [...channels.map(describeChannel), ...describeAll(deliveries)].join(""));
      }),
    );
}

interface ReplayFlags {
  readonly channel?: string;
}

function replayCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("replay", "Try again what was given up.", REPLAY_HELP, io)
    .argument("[id]", "one delivery, as the list numbers it")
    .option("--channel <name>", "all that is dead of one channel")
    .action((id: string | undefined, given: ReplayFlags, command: Command) =>
      storeAction<ReplayFlags>(io, async ({ channel }, read) => {
        const which = readWhich(read, id, channel);
        read.finish();
        if (which === undefined) return;
        const config = readConfig();
        const { replayed, outdated, notDead } = await withStore(config, async ({ db }) => {
          if ("channel" in which) await requireChannel(db, config, which.channel);
          return replayDeliveries(db, which);
        });
        if ("id" in which && replayed === 0) throw new UsageError([explain(which.id, outdated, notDead)]);
        const stale = outdated === 0 ? "" : `; ${outdated} overtaken by later messages and left`;
        await writeOut(io.stdout, `due again: ${replayed}${stale}.\n`);
      })(given, command),
    );
}

function explain(id: number, outdated: number, notDead: number): string {
  if (outdated > 0)
    return `delivery ${id} was overtaken: its channel has been sent a later message of that alert`;
  return notDead > 0 ? `delivery ${id} is not dead` : `there is no delivery ${id}`;
}

function readWhich(read: FlagReader, id: string | undefined, channel: string | undefined) {
  if ((id === undefined) === (channel === undefined)) {
    read.mistakes.push("either a delivery's number or --channel must be given");
    return undefined;
  }
  if (channel !== undefined) return { channel };
  if (/^[1-9]\d{0,14}$/.test(id ?? "")) return { id: Number(id) };
  read.mistakes.push(`"${id}" must be a delivery's number`);
  return undefined;
}

function readState(read: FlagReader, text: string | undefined): DeliveryState | undefined {
  if (text === undefined) return undefined;
  const state = DELIVERY_STATES.find((one) => one === text);
  return state ?? read.wrong("state", text, `one of ${DELIVERY_STATES.join(", ")}`);
}

function readLimit(read: FlagReader, text: string | undefined): number {
  const rule = `a whole number from 1 to ${MOST}`;
  const limit = read.integer("limit", text, rule) ?? DEFAULT_LIMIT;
  if (limit < 1 || limit > MOST) read.wrong("limit", text, rule);
  return limit;
}

type Channel = Awaited<ReturnType<typeof readChannelStandings>>[number];

function describeChannel({
  channel,
  circuit,
  waiting,
  dead,
  lastError,
  retryAtMs,
}: Omit<Channel, "nowMs"> & { circuit: string }) {
  const why = lastError === null ? "" : `   ${shortenText(lastError, MAX_TEXT_CHARS)}`;
  const standing =
    circuit === "open" ? `does not deliver, tried again ${showTime(retryAtMs)} UTC` : CIRCUITS[circuit];
  return `channel ${shortenText(channel, 64)}: ${standing ?? circuit}, ${waiting} waiting, ${dead} dead${why}\n`;
}

/** An open circuit sounds well and is not. */
const CIRCUITS: Readonly<Record<string, string>> = {
  closed: "delivers",
  "half-open": "does not deliver, tried again now",
  disabled: "off until it is configured anew",
};

function describeAll(deliveries: readonly Delivery[]): string[] {
  return deliveries.length === 0 ? ["No such delivery.\n"] : deliveries.map(describe);
}

function describe(delivery: Delivery): string {
  const { id, createdAt, state, channel, reason, alertId, attempts, headline, lastError } = delivery;
  const how = [
    delivery.standsInFor === null ? "" : `for ${shortenText(delivery.standsInFor, 64)}`,
    delivery.digestKey === null ? "" : "in a digest",
  ].filter((part) => part !== "");
  const what = [`alert ${alertId}`, reason, `to ${shortenText(channel, 64)}`, ...how].join(" ");
  const text = headline === null ? "" : `: ${shortenText(headline, MAX_TEXT_CHARS)}`;
  const error = lastError === null ? "" : `    ${shortenText(lastError, MAX_TEXT_CHARS)}\n`;
  return `${id}  ${showTime(createdAt)} UTC  ${state}, ${many(attempts, "attempt")}  ${what}${text}\n${error}`;
}
