import { z } from "zod";
import {
  type Delivery,
  listDeliveries,
  type Replayed,
  readDeliveryZone,
  replayDeliveries,
} from "#db/delivery/deliveries.ts";
import type { Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { showAge, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { DELIVERY_STATES, type DeliveryState } from "#model/kinds.ts";
import * as fields from "#operations/fields.ts";
import { IsoTime, Name, RowId, Text, toIso, toIsoOrNull } from "#operations/fields.ts";
import { defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireChannel, requireZone } from "#operations/require-known.ts";

const TAG = "Deliveries";
const MAX_NAME_CHARS = 64;
const MAX_TEXT_CHARS = 160;

const DeliveryItem = z
  .object({
    id: z.number().int(),
    alertId: z.number().int(),
    transition: z.number().int(),
    reason: Name,
    channel: Name,
    state: z.enum(DELIVERY_STATES),
    attempts: z.number().int(),
    createdAt: IsoTime,
    nextAttemptAt: IsoTime.nullable(),
    deliveredAt: IsoTime.nullable(),
    isInDigest: z.boolean(),
    standsInFor: Name.nullable().describe(
      "On the fallback channel: the channel that the notification was meant for.",
    ),
    lastError: Text.nullable().describe("May quote the receiver."),
    headline: Text.nullable().describe("The text may contain text from event logs. Escape it."),
  })
  .meta({ id: "Delivery" });

type DeliveryItem = z.infer<typeof DeliveryItem>;

export const ChannelName = z
  .string()
  .min(1)
  .max(200)
  .refine((name) => !name.includes("\0"), "must be a channel's name");

const STATE_STYLES: Readonly<Record<DeliveryState, Style>> = {
  pending: "yellow",
  sending: "yellow",
  delivered: "green",
  dead: "red",
  needless: "dim",
};

const list = defineQuery({
  name: "deliveries.list",
  summary: "List deliveries, newest first",
  http: ["GET", "/api/v1/deliveries"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({
    state: z
      .enum(DELIVERY_STATES)
      .optional()
      .describe("dead: Longwatch has given up. needless: another message made this one unnecessary."),
    channel: ChannelName.optional(),
    alert: RowId.optional().describe("Only deliveries of this alert."),
    zone: fields.ZoneId.optional(),
    ...fields.pageQuery({ fallback: 50, most: 200 }),
  }),
  output: fields.pageOf(DeliveryItem),
  command: {
    examples: [
      "deliveries list",
      "deliveries list --state dead --channel slack",
      "deliveries list --state pending --json",
    ],
    help: "channels list shows whether a channel delivers, and how many deliveries are pending and dead.",
    limit: 50,
    columns: [
      { head: "DELIVERY", get: ({ id }) => String(id) },
      { head: "AGE", get: ({ createdAt }, { now }) => showAge(now - Date.parse(createdAt)) },
      { head: "WRITTEN (UTC)", get: ({ createdAt }) => showTime(createdAt) },
      { head: "STATE", get: ({ state }) => ({ text: state, style: STATE_STYLES[state] }) },
      { head: "ATTEMPTS", get: ({ attempts }) => String(attempts) },
      { head: "ALERT", get: ({ alertId }) => `#${alertId}` },
      { head: "CHANNEL", get: ({ channel }) => shortenText(channel, MAX_NAME_CHARS) },
      { head: "MESSAGE", get: describeMessage },
    ],
    empty: "No delivery matches.",
  },
  run: async (asked, { state, channel, alert, zone, limit, after }) => {
    const { db, caller, cursors } = asked;
    const zoneIds = fields.visibleZones(caller, zone);
    if (zone !== undefined) await requireZone(asked, zone);
    if (channel !== undefined) await requireChannel(asked, channel);
    const list = `deliveries:${JSON.stringify([state, channel, alert, zone])}`;
    const [beforeId] = cursors.readAfter(list, after)?.map(Number) ?? [];
    const filter = { state, channel, alertId: alert, zoneIds, beforeId };
    const rows = await listDeliveries(db, { ...filter, limit: limit + 1 });
    return fields.toPage(rows, limit, toDelivery, ({ id }) => cursors.sign(list, [id]));
  },
});

const replay = defineChange({
  name: "deliveries.replay",
  summary: "Send a dead delivery again",
  description:
    "The delivery keeps its dedupe key, so a receiver that already has the message drops it. The answer is 409 if the delivery is not dead.",
  http: ["POST", "/api/v1/deliveries/:id/replay"],
  tag: TAG,
  scope: "act",
  refuses: [409],
  input: z.strictObject({ id: RowId.describe("The number of the delivery.") }),
  output: z.object({ id: z.number().int(), replayed: z.number().int() }),
  command: {
    examples: ["deliveries replay 4711", "deliveries replay 4711 --by alice"],
    help: "A delivery stays dead if its channel was sent a later message of the same alert. channels replay sends all dead deliveries of a channel again.",
    say: ({ replayed }) => `replayed: ${replayed}.\n`,
  },
  run: async ({ tx, caller }, { id }) => {
    const zoneId = await readDeliveryZone(tx, id);
    if (zoneId === undefined || !fields.maySee(caller, zoneId)) throw fields.notFound(`delivery ${id}`);
    const result = await replayDeliveries(tx, { id });
    const { replayed, outdated } = result;
    if (replayed > 0) return { output: { id, replayed }, audit: toEntry(`delivery ${id}`, result) };
    if (outdated > 0)
      throw new Refusal(409, {
        slug: "delivery-overtaken",
        detail: `Delivery ${id} is outdated. Its channel was already sent a later message of the same alert.`,
      });
    throw new Refusal(409, {
      slug: "delivery-not-dead",
      detail: `Delivery ${id} is not dead. Only dead deliveries can be sent again.`,
    });
  },
});

const replayChannel = defineChange({
  name: "channels.replay",
  summary: "Send all dead deliveries of a channel again",
  http: ["POST", "/api/v1/channels/:name/replay"],
  tag: TAG,
  scope: "act",
  input: z.strictObject({ name: ChannelName.describe("The channel's name.") }),
  output: z.object({ replayed: z.number().int(), outdated: z.number().int(), notDead: z.number().int() }),
  command: {
    examples: ["channels replay slack", "channels replay slack --by alice"],
    help: "A replayed delivery keeps its key, so a receiver that already has the message drops it.",
    say: ({ replayed, outdated }) => {
      const stale = outdated === 0 ? "" : `; still dead because of a later message: ${outdated}`;
      return `replayed: ${replayed}${stale}.\n`;
    },
  },
  run: async (changing, { name }) => {
    fields.requireEveryZone(changing.caller);
    await requireChannel(changing, name, "name");
    const output = await replayDeliveries(changing.tx, { channel: name });
    return { output, audit: output.replayed === 0 ? null : toEntry(`channel ${name}`, output) };
  },
});

export const deliveryOperations = [list, replay];
export const channelReplay = replayChannel;

function toEntry(subject: string, replayed: Replayed) {
  return { action: "delivery.replayed", subject, details: { ...replayed } };
}

function toDelivery(delivery: Delivery): DeliveryItem {
  const { createdAt, nextAttemptAt, deliveredAt, digestKey } = delivery;
  return {
    ...delivery,
    createdAt: toIso(createdAt),
    nextAttemptAt: toIsoOrNull(nextAttemptAt),
    deliveredAt: toIsoOrNull(deliveredAt),
    isInDigest: digestKey !== null,
  };
}

function describeMessage({ reason, standsInFor, isInDigest, headline, lastError }: DeliveryItem): string {
  const how = [
    reason,
    ...(standsInFor === null ? [] : [`instead of ${shortenText(standsInFor, MAX_NAME_CHARS)}`]),
    ...(isInDigest ? ["in a digest"] : []),
  ];
  const said = [headline, lastError].flatMap((text) =>
    text === null ? [] : [shortenText(text, MAX_TEXT_CHARS)],
  );
  return [how.join(" "), ...said].join(": ");
}
