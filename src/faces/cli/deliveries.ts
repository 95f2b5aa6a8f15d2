import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import {
  DELIVERY_STATES,
  type Delivery,
  type DeliveryState,
  listDeliveries,
} from "#db/delivery/deliveries.ts";
import { toDelivery } from "#faces/http/routes/v1/deliveries.ts";
import { UsageError } from "#lib/errors.ts";
import { shortenText } from "#lib/escape-text.ts";
import { showAge } from "#lib/show-age.ts";
import { showTime } from "#lib/show-time.ts";
import { readChannels } from "#operations/read-channels.ts";
import { replayDeliveries } from "#operations/replay-deliveries.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { describeCircuit } from "#stages/delivery/circuit.ts";
import { createProcessIo, writeOut } from "./edge/edge-io.ts";
import type { FlagReader } from "./edge/flag-reader.ts";
import { writeJson } from "./edge/write-json.ts";
import { readActor } from "./options/read-actor.ts";
import {
  AFTER_OPTION,
  describeNext,
  oneMore,
  type PageFlags,
  readPage,
  toListPage,
} from "./options/read-page.ts";
import { readRowId } from "./options/read-row-id.ts";
import { readZone } from "./options/read-span.ts";
import { requireAlert, requireChannel, requireZones } from "./options/require-known.ts";
import { withStore } from "./store/open-store.ts";
import { commandGroup, type StoreIo, storeAction, storeCommand } from "./store/store-command.ts";
import { type Cell, drawTable } from "./terminal/draw-table.ts";
import { pickPaint } from "./terminal/pick-paint.ts";

const DEFAULT_LIMIT = 50;
const MAX_TEXT_CHARS = 160;

const LIST_HELP = `
The first table shows every channel: whether it delivers, and how many deliveries are pending and dead. --json shows the
channel's circuit: closed, open, half-open or disabled. The second table shows the newest deliveries. States: pending,
sending, delivered, dead (given up, can be replayed), needless (another message replaced it).
--json prints the answer of GET /api/v1/deliveries with the channels of GET /api/v1/status.
The command reads only the database. Exit code 0; 2 if the channel is neither configured nor was used before.

Examples:
  npm run -s longwatch -- deliveries list
  npm run -s longwatch -- deliveries list --state dead --channel slack
  npm run -s longwatch -- deliveries list --state pending --json`;

const REPLAY_HELP = `
A replayed delivery keeps its key, so a receiver that already has the message drops it. A delivery stays dead if its
channel was sent a later message of the same alert. audit list shows who replayed what. Exit code 0; 2 if there is no such delivery or channel, or if the
delivery is not dead.

Examples:
  npm run -s longwatch -- deliveries replay 4711
  npm run -s longwatch -- deliveries replay --channel slack`;

/** `longwatch deliveries`: lists deliveries and channels, and replays dead deliveries. */
export function deliveriesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("deliveries", "List deliveries to the channels, and replay dead deliveries.", io, [
    listCommand(readConfig, io),
    replayCommand(readConfig, io),
  ]);
}

interface ListFlags extends PageFlags {
  readonly state?: string;
  readonly channel?: string;
  readonly alert?: string;
  readonly zone?: string;
  readonly json?: true;
}

function listCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("list", "List deliveries, newest first.", LIST_HELP, io)
    .option("--state <state>", `one of ${DELIVERY_STATES.join(", ")} (default: all)`)
    .option("--channel <name>", "one channel (default: all)")
    .option("--alert <id>", "only deliveries of this alert")
    .option("--zone <id>", "only deliveries of alerts of this shield zone")
    .option("--limit <n>", `show at most this many (default: ${DEFAULT_LIMIT})`)
    .option(...AFTER_OPTION)
    .option("--json", "print deliveries and channels as JSON")
    .action(
      storeAction<ListFlags>(io, async (flags, read) => {
        const { channel } = flags;
        const zoneId = readZone(read, flags, false);
        const asked = {
          state: readState(read, flags.state),
          channel,
          alertId: flags.alert === undefined ? undefined : readRowId(read, flags.alert, "alert"),
          zoneIds: zoneId === undefined ? null : [zoneId],
          ...readPage(read, flags, DEFAULT_LIMIT),
        };
        read.finish();
        const config = readConfig();
        const { statuses, circuits, rows } = await withStore(config, async ({ db }) => {
          if (channel !== undefined) await requireChannel(db, config, channel);
          await requireZones(db, config, asked.zoneIds ?? []);
          if (asked.alertId !== undefined) await requireAlert(db, "alert", asked.alertId);
          return {
            statuses: await readChannelStatuses(db),
            circuits: await readChannels(db),
            rows: await listDeliveries(db, { ...asked, ...oneMore(asked) }),
          };
        });
        const isAsked = (name: string) => channel === undefined || name === channel;
        if (flags.json === true) {
          const channels = circuits.filter(({ name }) => isAsked(name));
          return writeJson(io.stdout, {
            ...toListPage(rows, asked, (row) => toDelivery(row, false)),
            channels,
          });
        }
        const shown = statuses
          .filter((one) => isAsked(one.channel))
          .map(({ nowMs, ...one }) => ({ ...one, circuit: describeCircuit(one, nowMs) }));
        const page = toListPage(rows, asked, (row) => row);
        const paint = pickPaint(io);
        await writeOut(io.stdout, `${describeChannels(shown, paint)}${describeAll(page, io.clock(), paint)}`);
      }),
    );
}

interface ReplayFlags {
  readonly channel?: string;
  readonly by?: string;
  readonly json?: true;
}

function replayCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("replay", "Replay dead deliveries.", REPLAY_HELP, io)
    .argument("[id]", "the delivery's number")
    .option("--channel <name>", "all dead deliveries of this channel")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action((id: string | undefined, given: ReplayFlags, command: Command) =>
      storeAction<ReplayFlags>(io, async ({ channel, by, json }, read) => {
        const which = readWhich(read, id, channel);
        const actor = readActor(read, by);
        read.finish();
        if (which === undefined) return;
        const config = readConfig();
        const { replayed, outdated, notDead } = await withStore(config, async (database) => {
          if ("channel" in which) await requireChannel(database.db, config, which.channel);
          return replayDeliveries(database, which, actor);
        });
        if ("id" in which && replayed === 0) throw new UsageError([explain(which.id, outdated, notDead)]);
        if (json === true) return writeJson(io.stdout, { ...which, replayed, outdated });
        const stale = outdated === 0 ? "" : `; still dead because of a later message: ${outdated}`;
        await writeOut(io.stdout, `replayed: ${replayed}${stale}.\n`);
      })(given, command),
    );
}

function explain(id: number, outdated: number, notDead: number): string {
  if (outdated > 0)
    return `delivery ${id} cannot be replayed: its channel was sent a later message of the same alert`;
  return notDead > 0
    ? `delivery ${id} is not dead; only dead deliveries can be replayed`
    : `there is no delivery ${id}`;
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

type Channel = Awaited<ReturnType<typeof readChannelStatuses>>[number];

type ShownChannel = Omit<Channel, "nowMs"> & { readonly circuit: string };

function describeChannels(channels: readonly ShownChannel[], paint: Paint): string {
  if (channels.length === 0) return "";
  const head = ["CHANNEL", "DELIVERS", "PENDING", "DEAD", "LAST ERROR"];
  const rows = channels.map(({ channel, circuit, waiting, dead, lastError, retryAtMs }): Cell[] => [
    shortenText(channel, 64),
    toCircuitCell(circuit, retryAtMs),
    String(waiting),
    dead === 0 ? "0" : { text: String(dead), style: "red" },
    lastError === null ? "" : shortenText(lastError, MAX_TEXT_CHARS),
  ]);
  return `${drawTable(head, rows, paint)}\n`;
}

/** Describes the circuit in words. The word "open" alone would suggest a channel that works. */
function toCircuitCell(circuit: string, retryAtMs: number): Cell {
  if (circuit === "closed") return { text: "yes", style: "green" };
  const tried = `next attempt ${showTime(retryAtMs - (retryAtMs % 1_000))} UTC`;
  const why: Readonly<Record<string, string>> = {
    open: tried,
    "half-open": "an attempt runs now",
    disabled: "disabled until its configuration changes",
  };
  return { text: `no, ${why[circuit] ?? circuit}`, style: "red" };
}

const STATE_STYLES: Readonly<Record<DeliveryState, Style>> = {
  pending: "yellow",
  sending: "yellow",
  delivered: "green",
  dead: "red",
  needless: "dim",
};

function describeAll(
  { items, next }: { readonly items: readonly Delivery[]; readonly next: string | null },
  nowMs: number,
  paint: Paint,
): string {
  if (items.length === 0) return "No delivery matches.\n";
  const head = ["DELIVERY", "AGE", "WRITTEN (UTC)", "STATE", "ATTEMPTS", "ALERT", "CHANNEL", "MESSAGE"];
  return `${drawTable(
    head,
    items.map((item) => toRow(item, nowMs)),
    paint,
  )}${describeNext(next)}`;
}

function toRow(delivery: Delivery, nowMs: number): Cell[] {
  const { id, createdAt, state, channel, reason, alertId, attempts, headline, lastError } = delivery;
  const how = [
    reason,
    ...(delivery.standsInFor === null ? [] : [`instead of ${shortenText(delivery.standsInFor, 64)}`]),
    ...(delivery.digestKey === null ? [] : ["in a digest"]),
  ];
  const said = [headline, lastError].flatMap((text) =>
    text === null ? [] : [shortenText(text, MAX_TEXT_CHARS)],
  );
  return [
    String(id),
    showAge(nowMs - createdAt),
    showTime(createdAt - (createdAt % 1_000)),
    { text: state, style: STATE_STYLES[state] },
    String(attempts),
    `#${alertId}`,
    shortenText(channel, 64),
    [how.join(" "), ...said].join(": "),
  ];
}
