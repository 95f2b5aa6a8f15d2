import { createHash } from "node:crypto";
import type { EventEmitter } from "node:events";
import {
  type BackendFactory,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
} from "bullmq";
import { withSession } from "#lib/sql-session.ts";

const ignore = () => undefined;

/**
 * Keeps an error listener on a connection even if all listeners are removed, because an error without a listener ends
 * the process.
 */
function keepListener(client: EventEmitter): void {
  const removeAll = client.removeAllListeners.bind(client);
  client.on("error", ignore);
  client.removeAllListeners = (event) => {
    removeAll(event);
    return client.on("error", ignore);
  };
}

/** Replaces the settings that BullMQ sends at the start of a connection, which poolers refuse. */
function setSessions(connection: PostgresConnection): void {
  const pool = connection.pool as unknown as { Client: Parameters<typeof withSession>[0] };
  pool.Client = withSession(pool.Client, {
    search_path: connection.schema,
    // The sweep enqueues a job again whose message a server crash has lost, so no commit has to wait for the disk.
    synchronous_commit: "off",
  });
  // This is the connection that listens.
  Object.assign(connection, { pgModule: { Client: pool.Client } });
}

/** Names BullMQ's few statements, so that the server parses each once per session. */
function prepare(pool: PostgresConnection["pool"]): void {
  const query = pool.query.bind(pool);
  const names = new Map<string, string>();
  const nameOf = (text: string) => {
    const name = names.get(text) ?? createHash("sha256").update(text).digest("hex").slice(0, 32);
    names.set(text, name);
    return name;
  };
  pool.query = (text: unknown, values?: unknown[]) =>
    typeof text === "string"
      ? query({ name: nameOf(text), text, values: values ?? [] } as never)
      : query(text as never, values);
}

/**
 * BullMQ's Postgres backend, except that a connection which dies while it is in use or being closed fails that call
 * and does not end the process. The waiting caller still gets the error.
 */
export const createGuardedPostgres: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection = false } = {},
) => {
  const connection = new PostgresConnection(options.connection);
  setSessions(connection);
  connection.pool.on("connect", (client) => client.on("error", ignore));
  prepare(connection.pool);
  const getListenClient = connection.getListenClient.bind(connection);
  const guarded = new WeakSet<object>();
  connection.getListenClient = async () => {
    const client = await getListenClient();
    if (!guarded.has(client)) keepListener(client as unknown as EventEmitter);
    guarded.add(client);
    return client;
  };
  return new PostgresQueueBackend(connection, name, options, true, withBlockingConnection ? name : undefined);
};
