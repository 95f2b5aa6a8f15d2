import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { actOf, known, notFound, requireEveryZone } from "#operations/fields.ts";
import { testChannel } from "#operations/test-channel.ts";
import { maskNullable, maskText } from "#stages/archive/mask/mask-text.ts";
import { describeCircuit } from "#stages/delivery/circuit.ts";
import type { ApiDeps } from "./api-deps.ts";

export const ChannelItem = z
  .object({
    name: z.string(),
    kind: z.string().nullable().describe("Null if the configuration no longer has the channel."),
    isConfigured: z.boolean(),
    circuit: z
      .string()
      .describe("One of closed, open, half-open, disabled; closed if nothing was ever sent."),
    waiting: z.number().int(),
    dead: z.number().int(),
    lastError: z.string().nullable(),
    perMinute: z
      .number()
      .nullable()
      .describe("The most messages in a minute. Null if this process does not have the channel."),
  })
  .meta({ id: "ChannelItem" });

const ChannelName = z.object({
  name: z
    .string()
    .min(1)
    .max(200)
    .refine((name) => !name.includes("\0"), "must be a channel's name"),
});

/** `/api/v1/channels`: state, a test message, and dead letters sent again. */
export function addChannels(app: FastifyInstance, { archive, clock, acts, service }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    "/api/v1/channels",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Deliveries"],
        summary: "List channels with their state",
        response: { 200: z.object({ items: z.array(ChannelItem) }) },
      },
    },
    async ({ caller }) => {
      requireEveryZone(caller);
      const statuses = new Map((await readChannelStatuses(archive)).map((one) => [one.channel, one]));
      const kinds = new Map(service.alerting().channels.map(({ name, kind }) => [name, kind]));
      const names = [...new Set([...kinds.keys(), ...statuses.keys()])].sort();
      const items = names.map((name) => {
        const status = statuses.get(name);
        return {
          name,
          kind: kinds.get(name) ?? null,
          isConfigured: kinds.has(name),
          circuit: status === undefined ? "closed" : describeCircuit(status, status.nowMs),
          waiting: status?.waiting ?? 0,
          dead: status?.dead ?? 0,
          // A failure can quote the receiver.
          lastError: known(caller).masked ? maskNullable(status?.lastError) : (status?.lastError ?? null),
          perMinute: service.notifiers.get(name)?.capabilities.rate.perMinute ?? null,
        };
      });
      return { items };
    },
  );

  typed.post(
    "/api/v1/channels/:name/test",
    {
      config: { access: { scope: "act" } },
      schema: {
        tags: ["Deliveries"],
        summary: "Send one test message on a channel",
        description:
          "The message is sent once, by the process that answers, without the outbox. A test incident is resolved again.",
        params: ChannelName,
        response: {
          200: z.object({ isDelivered: z.boolean(), code: z.string().nullable(), text: z.string() }),
        },
      },
    },
    async ({ params: { name }, caller }) => {
      requireEveryZone(caller);
      const notifier = service.notifiers.get(name);
      if (notifier === undefined) throw notFound(`channel ${name}`);
      const { actor } = actOf(caller);
      const tested = await testChannel(notifier, clock(), []);
      await acts.audit({
        actor,
        action: "channel.tested",
        subject: `channel ${name}`,
        details: { isDelivered: tested.isDelivered },
      });
      return known(caller).masked ? { ...tested, text: maskText(tested.text) } : tested;
    },
  );

  typed.post(
    "/api/v1/channels/:name/replay",
    {
      config: { access: { scope: "act" } },
      schema: {
        tags: ["Deliveries"],
        summary: "Send all dead deliveries of a channel again",
        params: ChannelName,
        response: {
          200: z.object({
            replayed: z.number().int(),
            outdated: z.number().int(),
            notDead: z.number().int(),
          }),
        },
      },
    },
    async ({ params: { name }, caller }) => {
      requireEveryZone(caller);
      return await acts.replayChannel({ channel: name, ...actOf(caller) });
    },
  );
}
