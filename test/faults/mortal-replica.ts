import type { Database } from "#db/client.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { createReplica, type Replica, type ReplicaOptions } from "./replica.ts";

interface MortalReplica extends Replica {
  hasDied(): boolean;
}

/**
 * Returns a replica that dies when the named job reaches the point: before or after an "ask" of the platform, a "write"
 * (one statement), a "commit", or a "send" of a message. For Postgres, the platform and the channel its death is
 * `kill -9`: the kernel closes every connection, and nothing more arrives. Real processes are killed in
 * `ingest/ingest-kill.test.ts`, in `app/kill.test.ts` and by the soak; one process per point costs a second of CPU.
 */
export function createMortalReplica(
  job: string,
  point: string,
  { onMessage, ...options }: ReplicaOptions,
): MortalReplica {
  let running = "";
  let isDead = false;
  const sockets = new Set<{ destroy(): unknown }>();

  function reach(here: string): void {
    if (running !== job || here !== point) return;
    isDead = true;
    for (const socket of sockets) socket.destroy();
  }
  function expectAlive(): void {
    if (isDead) throw new Error("the replica is dead");
  }

  function wrapEdge(edge: EdgeClient): EdgeClient {
    const wrapped = Object.entries(edge).map(([name, call]) => [
      name,
      async (...args: unknown[]) => {
        reach("before ask");
        expectAlive();
        const answer: unknown = await (call as (...args: unknown[]) => Promise<unknown>)(...args);
        reach("after ask");
        expectAlive();
        return answer;
      },
    ]);
    return Object.fromEntries(wrapped) as EdgeClient;
  }

  function wrapDatabase(database: Database): Database {
    database.pool.on("connect", (client) => {
      const { stream } = (client as unknown as { connection: { stream: { destroy(): unknown } } }).connection;
      sockets.add(stream);
      if (isDead) stream.destroy();
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: unknown[]) => {
        const [asked] = args as [string | { text?: string }];
        const text = (typeof asked === "string" ? asked : asked.text) ?? "";
        const what =
          text === "commit" ? "commit" : /^\s*(insert|update|delete|with)/i.test(text) ? "write" : null;
        if (what === null) return query(...args);
        reach(`before ${what}`);
        const told = args.at(-1);
        if (typeof told === "function") {
          const answer = (...answers: unknown[]) => {
            reach(`after ${what}`);
            (told as (...answers: unknown[]) => void)(...answers);
          };
          return query(...args.slice(0, -1), answer);
        }
        const done = query(...args);
        return done instanceof Promise ? done.finally(() => reach(`after ${what}`)) : done;
      }) as typeof client.query;
    });
    return database;
  }

  const replica = createReplica({
    ...options,
    wrapEdge,
    wrapDatabase,
    onMessage: (message) => {
      reach("before send");
      expectAlive();
      onMessage?.(message);
      reach("after send");
      expectAlive();
    },
  });
  return {
    ...replica,
    hasDied: () => isDead,
    run: (name, signal) => {
      running = name;
      return replica.run(name, signal);
    },
  };
}
