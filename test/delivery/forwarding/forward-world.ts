import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { afterAll } from "vitest";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { readStored } from "#archive/search/read-records.ts";
import { createArchiveReader } from "#db/archive/archive-reader.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { type Destination, openSink } from "#delivery/receivers/sinks/destination.ts";
import { createForwardEventsJob } from "#jobs/delivery/forwarding/forward-events.ts";
import { createSecret } from "#lib/secret.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { NOW, openArchiveWorld, ZONE } from "../../archive/files/archive-world.ts";
import type { MigratedDatabase } from "../../db/migrated-database.ts";
import { silent } from "../../ingest/ingest-support.ts";

const SECRET = `whsec_${Buffer.alloc(32, "longwatch test ").toString("base64")}`;

/** A receiver that stores events by zone and log id. */
export interface Receiver {
  /** The last body of each event, by `<zone> <log id>`. */
  readonly stored: Map<string, string>;
  /** Number of events that it was sent and had already. */
  readonly repeated: () => number;
  readonly url: string;
  /** Answers the next requests instead; each is called once, in order. */
  readonly next: ((lines: readonly string[], response: ServerResponse, store: () => void) => void)[];
}

async function startReceiver(): Promise<Receiver> {
  const stored = new Map<string, string>();
  const next: Receiver["next"][number][] = [];
  let repeated = 0;
  const webhook = new Webhook(SECRET);
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const {
      "webhook-id": id,
      "webhook-timestamp": seconds,
      "webhook-signature": signature,
    } = request.headers;
    if (webhook.sign(String(id), new Date(Number(seconds) * 1_000), body) !== signature)
      return void response.writeHead(401).end();
    const lines = body.split("\n").slice(0, -1);
    const store = () => {
      for (const line of lines) {
        const { zoneId = ZONE, logId } = JSON.parse(line) as { zoneId?: number; logId: string };
        const key = `${zoneId} ${logId}`;
        repeated += Number(stored.has(key));
        stored.set(key, line);
      }
    };
    const answer = next.shift();
    if (answer !== undefined) return answer(lines, response, store);
    store();
    response.writeHead(204).end();
  };
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.writeHead(500).end());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { stored, next, repeated: () => repeated, url: `http://127.0.0.1:${port}/events` };
}

/** A database with an archive, and a job that forwards to one receiver. */
export async function openForwardWorld() {
  const archive = await openArchiveWorld();
  const { database } = archive;
  const reading = {
    queries: database,
    files: createArchiveReader({ ...archive, scratch: archive.folder }),
    openedBlocks: createOpenedBlocks(),
  };
  const receiver = await startReceiver();
  let nowMs = NOW;
  const settings = {
    url: createSecret(receiver.url),
    secrets: [createSecret(SECRET)],
    allowPrivateNetworks: true,
  };
  const sink = openSink({ name: "siem", kind: "webhook", settings }, { clock: () => Date.now() });
  const pauses: number[] = [];
  const runOf = (
    over: Partial<Destination> = {},
    zoneIds: readonly number[] = [ZONE],
    signal = new AbortController().signal,
  ) => {
    const destination: Destination = {
      name: "siem",
      kind: "webhook",
      zones: null,
      where: [],
      format: "event",
      batchEvents: 500,
      startAgoMs: null,
      sink,
      ...over,
    };
    const again: string[] = [];
    const job = createForwardEventsJob({
      database,
      readStored: (...asked) => readStored(reading, ...asked),
      clock: () => nowMs,
      log: silent,
      ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
      eventDays: 400,
      destinations: new Map([[destination.name, destination]]),
      zoneIds,
      onForwarded: () => undefined,
      sleep: async (ms) => void pauses.push(ms),
      again: (name) => again.push(name),
    });
    return job.run({ destination: destination.name } as never, signal);
  };
  return {
    ...archive,
    receiver,
    sink,
    /** How long the runs have waited within themselves, one number a pause. */
    pauses,
    run: runOf,
    setNow: (ms: number) => void (nowMs = ms),
    hours: () => readHours(database),
    /** Holds the destination's lease from another process while `fn` runs. */
    whileLeased: (fn: () => Promise<unknown>) =>
      holdLease(database, { name: "forward-events.siem", ttlMs: 60_000 }, async () => fn()),
  };
}

async function readHours({ pool }: MigratedDatabase) {
  const { rows } = await pool.query(
    `select zone_id as zone, to_char(starts_at at time zone 'UTC', 'HH24') as hour, arrival, stored, acknowledged, counted
     from forward_hours where stored > 0 or acknowledged > 0 or look_at is not null order by 1, starts_at`,
  );
  return rows;
}
