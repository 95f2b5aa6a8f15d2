import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { DELIVERY_STATES, type Delivery, listDeliveries, readDeliveryZone } from "#db/delivery/deliveries.ts";
import {
  actOf,
  IsoTime,
  known,
  maySee,
  notFound,
  pageOf,
  pageQuery,
  RowId,
  toIso,
  toIsoOrNull,
  toPage,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";
import type { ApiDeps } from "./api-deps.ts";

const Query = z.strictObject({
  state: z
    .enum(DELIVERY_STATES)
    .optional()
    .describe("dead: Longwatch has given up. needless: another message made this one unnecessary."),
  channel: z
    .string()
    .min(1)
    .max(200)
    .refine((name) => !name.includes("\0"), "a channel's name")
    .optional(),
  alert: RowId.optional(),
  zone: ZoneId.optional(),
  ...pageQuery({ fallback: 50, most: 200 }),
});

export const DeliveryItem = z
  .object({
    id: z.number().int(),
    alertId: z.number().int(),
    transition: z.number().int(),
    reason: z.string(),
    channel: z.string(),
    state: z.enum(DELIVERY_STATES),
    attempts: z.number().int(),
    createdAt: IsoTime,
    nextAttemptAt: IsoTime.nullable(),
    deliveredAt: IsoTime.nullable(),
    isInDigest: z.boolean(),
    standsInFor: z
      .string()
      .nullable()
      .describe("On the fallback channel: the channel that the notification was meant for."),
    lastError: z.string().nullable(),
    headline: z.string().nullable().describe("The text may contain text from event logs. Escape it."),
  })
  .meta({ id: "Delivery" });

/** `GET /api/v1/deliveries` and `POST /api/v1/deliveries/{id}/replay`. */
export function addDeliveries(app: FastifyInstance, { archive, cursors, acts }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    "/api/v1/deliveries",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Deliveries"],
        summary: "List deliveries, newest first",
        querystring: Query,
        response: { 200: pageOf(DeliveryItem) },
      },
    },
    async ({ query: { state, channel, alert, zone, limit, after }, caller }) => {
      const list = `deliveries:${JSON.stringify([state, channel, alert, zone])}`;
      const [beforeId] = cursors.readAfter(list, after) ?? [];
      const rows = await listDeliveries(archive, {
        state,
        channel,
        alertId: alert,
        zoneIds: visibleZones(caller, zone),
        beforeId: beforeId === undefined ? undefined : Number(beforeId),
        limit: limit + 1,
      });
      const { masked } = known(caller);
      const toItem = (delivery: Delivery) => toDelivery(delivery, masked);
      return toPage(rows, limit, toItem, ({ id }) => cursors.sign(list, [id]));
    },
  );

  typed.post(
    "/api/v1/deliveries/:id/replay",
    {
      config: { access: { scope: "act" }, refuses: [409] },
      schema: {
        tags: ["Deliveries"],
        summary: "Send a dead delivery again",
        description:
          "The delivery keeps its dedupe key, so a receiver that already has the message drops it. The answer is 409 if the delivery is not dead.",
        params: z.object({ id: RowId }),
        response: { 200: z.object({ id: z.number().int(), replayed: z.number().int() }) },
      },
    },
    async ({ params: { id }, caller }) => {
      const zoneId = await readDeliveryZone(archive, id);
      if (zoneId === undefined || !maySee(caller, zoneId)) throw notFound(`delivery ${id}`);
      const { by, actor } = actOf(caller);
      const { replayed, outdated, notDead } = await acts.replayDelivery({ id, by, actor });
      if (replayed > 0) return { id, replayed };
      if (outdated > 0)
        throw new Refusal(409, {
          slug: "delivery-overtaken",
          detail: `Delivery ${id} is outdated. Its channel was already sent a later message of the same alert.`,
        });
      if (notDead > 0)
        throw new Refusal(409, {
          slug: "delivery-not-dead",
          detail: `Delivery ${id} is not dead. Only dead deliveries can be sent again.`,
        });
      throw notFound(`delivery ${id}`);
    },
  );
}

export function toDelivery(delivery: Delivery, isMasked: boolean): z.infer<typeof DeliveryItem> {
  const { createdAt, nextAttemptAt, deliveredAt, digestKey, lastError, headline } = delivery;
  return {
    ...delivery,
    lastError: isMasked ? maskNullable(lastError) : lastError,
    headline: isMasked ? maskNullable(headline) : headline,
    createdAt: toIso(createdAt),
    nextAttemptAt: toIsoOrNull(nextAttemptAt),
    deliveredAt: toIsoOrNull(deliveredAt),
    isInDigest: digestKey !== null,
  };
}
