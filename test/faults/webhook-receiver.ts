import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { z } from "zod";

const SECRET = `whsec_${Buffer.alloc(32, "longwatch test ").toString("base64")}`;

const Alert = z.object({
  timestamp: z.iso.datetime(),
  data: z.looseObject({
    alertId: z.number(),
    transition: z.number(),
    reason: z.string(),
    ruleId: z.string().nullable(),
    advice: z.looseObject({ state: z.string() }),
    members: z.array(z.looseObject({ zoneId: z.number(), ruleId: z.string() })).optional(),
    digest: z.array(z.looseObject({ alertId: z.number() })).optional(),
  }),
});
/** The list that follows a group's message with more rules than it has room for. */
const Members = z.object({
  type: z.literal("alert.members"),
  timestamp: z.iso.datetime(),
  data: z.looseObject({ zones: z.array(z.object({ zoneId: z.number(), ruleIds: z.array(z.string()) })) }),
});

interface Received {
  /** Id of this message on this channel, the same for every attempt. */
  readonly id: string;
  readonly alertId: number;
  readonly transition: number;
  readonly reason: string;
  readonly ruleId: string | null;
  /** Its state is "present" once the recommendation is in the message. */
  readonly advice: { readonly state: string };
}

export interface WebhookReceiver {
  readonly received: readonly Received[];
  /** When a group's message last named `<zone> <rule>`, epoch ms. */
  readonly named: ReadonlyMap<string, number>;
  /** The alerts that a digest named. */
  readonly digested: ReadonlySet<number>;
  /** Environment that configures a service to post here. */
  readonly env: Record<string, string>;
  /** Sets the status of all later answers. The sender retries 500 and above. */
  answer(status: number): void;
  close(): void;
}

/** Starts a receiver that checks the signature of each post and stores it, like an on-call tool. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const named = new Map<string, number>();
  const digested = new Set<number>();
  const webhook = new Webhook(SECRET);
  let status = 200;
  const take = async (request: IncomingMessage) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const posted = webhook.verify(body, request.headers as Record<string, string>);
    const following = Members.safeParse(posted);
    if (status >= 300) return;
    if (following.success) {
      const { timestamp, data } = following.data;
      for (const { zoneId, ruleIds } of data.zones)
        for (const ruleId of ruleIds) named.set(`${zoneId} ${ruleId}`, Date.parse(timestamp));
      return;
    }
    const { timestamp, data } = Alert.parse(posted);
    received.push({ ...data, id: String(request.headers["webhook-id"]) });
    for (const { zoneId, ruleId } of data.members ?? [])
      named.set(`${zoneId} ${ruleId}`, Date.parse(timestamp));
    for (const { alertId } of data.digest ?? []) digested.add(alertId);
  };
  const server = createServer((request, response) => {
    take(request).then(
      () => response.writeHead(status).end(),
      () => response.writeHead(400).end(),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    received,
    named,
    digested,
    env: {
      LONGWATCH_WEBHOOK_URL: `http://127.0.0.1:${port}/hook`,
      LONGWATCH_WEBHOOK_SECRET: SECRET,
      LONGWATCH_ALLOW_PRIVATE_WEBHOOKS: "true",
    },
    answer(next) {
      status = next;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
