import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { z } from "zod";

const SECRET = `whsec_${Buffer.alloc(32, "longwatch test ").toString("base64")}`;

const Posted = z.object({
  data: z.looseObject({
    alertId: z.number(),
    transition: z.number(),
    reason: z.string(),
    ruleId: z.string().nullable(),
    advice: z.looseObject({ state: z.string() }),
  }),
});

interface Received {
  /** Of this message on this channel, the same for every attempt. */
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
  /** Configures a service to post here. */
  readonly env: Record<string, string>;
  /** From now on every post is answered like this; 500 and above are retried by the sender. */
  answer(status: number): void;
  close(): void;
}

/** Somebody's on-call tool: checks the signature of what is posted and keeps it. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const webhook = new Webhook(SECRET);
  let status = 200;
  const take = async (request: IncomingMessage) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { data } = Posted.parse(webhook.verify(body, request.headers as Record<string, string>));
    if (status < 300) received.push({ ...data, id: String(request.headers["webhook-id"]) });
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
