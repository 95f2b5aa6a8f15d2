import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sql } from "drizzle-orm";
import { pino } from "pino";
import type { Database } from "#db/client.ts";
import { alerts } from "#db/schema/alerts.ts";
import { channelStates, notifications } from "#db/schema/notifications.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { webhook } from "#delivery/receivers/channels/webhook/webhook.ts";
import { createDeliverAlertsJob, type DeliverAlertsDeps } from "#jobs/delivery/deliver-alerts.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { messageOf } from "./support/messages.ts";
import { SIGNING_SECRET } from "./support/receiver.ts";

interface Received {
  readonly channel: string;
  /** The webhook-id. */
  readonly id: string;
  readonly message: AlertMessage;
}

type Answer = (response: ServerResponse, received: Received) => unknown;

/** A receiver on a socket: one path per channel, each with its own way to answer, 204 unless set otherwise. */
export async function startReceiver() {
  const received: Received[] = [];
  const answers = new Map<string, Answer>();
  let inFlight = 0;
  let mostInFlight = 0;
  const server = createServer((request, response) => {
    inFlight += 1;
    mostInFlight = Math.max(mostInFlight, inFlight);
    response.on("close", () => (inFlight -= 1));
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const channel = (request.url ?? "/").slice(1);
      const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: AlertMessage };
      const one = { channel, id: String(request.headers["webhook-id"]), message: data };
      received.push(one);
      const answer = answers.get(channel);
      if (answer === undefined) response.writeHead(204).end();
      else answer(response, one);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    /** Posts as `channel reason`. */
    heard: () => received.map(({ channel, message }) => `${channel} ${message.reason}`),
    mostInFlight: () => mostInFlight,
    answer(channel: string, answer: Answer): void {
      answers.set(channel, answer);
    },
    status(channel: string, status: number, headers: Record<string, string> = {}): void {
      answers.set(channel, (response) => response.writeHead(status, headers).end());
    },
    /** Resets the receiver, as if it had just started. */
    reset(): void {
      received.length = 0;
      answers.clear();
      mostInFlight = inFlight;
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export function webhooksOf(url: string, channels: readonly string[]): ReadonlyMap<string, Notifier> {
  const notifiers = channels.map((name) =>
    webhook.open({
      name,
      url: createSecret(`${url}/${name}`),
      secrets: [createSecret(SIGNING_SECRET)],
      clock: Date.now,
      network: { allowPrivateNetworks: true },
    }),
  );
  return new Map(notifiers.map((notifier) => [notifier.name, notifier]));
}

type Reason = AlertMessage["reason"];

/** The outbox, the job, and Postgres's clock. */
export function createDeliverWorld(database: Database, receiver: Receiver) {
  const { db } = database;
  let count = 0;
  return {
    async clear(): Promise<void> {
      receiver.reset();
      await db.delete(alerts);
      await db.delete(channelStates);
    },
    /** An alert as raise-alerts leaves it, with these transitions for these channels; its id. */
    async raise(reasons: readonly Reason[], channels: readonly string[] = ["chat"]): Promise<number> {
      count += 1;
      const fingerprint = `alert-${count}`;
      const inserted = await db
        .insert(alerts)
        .values({ firedAt: new Date(), kind: "spike", fingerprint, transition: reasons.length })
        .returning({ id: alerts.id });
      const alertId = inserted[0]?.id ?? 0;
      for (const [index, reason] of reasons.entries()) await this.add(alertId, index + 1, reason, channels);
      return alertId;
    },
    async add(
      alertId: number,
      transition: number,
      reason: Reason,
      channels: readonly string[] = ["chat"],
    ): Promise<void> {
      const state = reason === "resolved" ? "resolved" : "firing";
      const content = messageOf({ alertId, transition, reason, state });
      const rows = channels.map((channel) => {
        const dedupeKey = `${alertId}-${transition}-${channel}`;
        return { alertId, transition, reason, channel, dedupeKey, content };
      });
      await db.insert(notifications).values(rows);
    },
    /** Everything that was written becomes older by as much. */
    async pass(ms: number): Promise<void> {
      const earlier = (column: unknown) =>
        sql`${column} - ${ms}::double precision * interval '1 millisecond'`;
      await db.update(notifications).set({
        createdAt: earlier(notifications.createdAt),
        nextAttemptAt: earlier(notifications.nextAttemptAt),
        deliveredAt: earlier(notifications.deliveredAt),
      });
      await db.update(channelStates).set({
        openedAt: earlier(channelStates.openedAt),
        retryAt: earlier(channelStates.retryAt),
        spentUntil: earlier(channelStates.spentUntil),
      });
    },
    run(
      channels: readonly string[] = ["chat"],
      over: Partial<DeliverAlertsDeps> = {},
      signal = new AbortController().signal,
    ) {
      const notifiers = webhooksOf(receiver.url, channels);
      const deps = { database, notifiers, log: pino({ level: "silent" }), random: () => 0.999, ...over };
      return createDeliverAlertsJob(deps).run({} as never, signal);
    },
    notifiers: (channels: readonly string[]) => webhooksOf(receiver.url, channels),
    /** The outbox as `transition reason channel state`. */
    async outbox(): Promise<string[]> {
      const rows = await db.select().from(notifications).orderBy(notifications.id);
      return rows.map(
        ({ transition, reason, channel, state }) => `${transition} ${reason} ${channel} ${state}`,
      );
    },
    rows: () => db.select().from(notifications).orderBy(notifications.id),
    alerts: () => db.select().from(alerts).orderBy(alerts.id),
  };
}

export type DeliverWorld = ReturnType<typeof createDeliverWorld>;

/** Opens a database with a receiver and its world. Made for `beforeAll`, which calls a function that it is given at the end. */
export async function openDeliverWorld() {
  const database = await createMigratedDatabase();
  const receiver = await startReceiver();
  const world = createDeliverWorld(database, receiver);
  const close = async () => {
    await receiver.close();
    await database.drop();
  };
  return { database, receiver, world, close };
}
