/** Ends the connections to an SQL server that has stopped answering, as one whose machine or network is gone. */

/** The members of the driver's client that show whether an answer is awaited, and has begun to come. */
export interface Asking {
  readonly readyForQuery: boolean;
  readonly connection: {
    readonly stream: {
      readonly bytesRead: number;
      readonly remoteAddress?: string;
      destroy(error: Error): unknown;
    };
  };
  once(event: "end", listener: () => void): unknown;
}

interface Watched {
  readonly client: Asking;
  /** All connections to one server end together. */
  readonly server: string;
  readonly afterMs: number;
  /** Returns whether the server answers a new connection, because a long statement is silent as well. */
  readonly isAnswering: () => Promise<boolean>;
  bytesRead: number;
  /** When the client last had an answer, or nothing to wait for. */
  sinceMs: number;
}

const CHECK_MS = 5_000;
const watched = new Set<Watched>();
const asked = new Set<string>();
let timer: NodeJS.Timeout | undefined;

/** Watches the connection of a client until it ends. */
export function watchSilence(
  client: Asking,
  { server, afterMs, isAnswering }: Pick<Watched, "server" | "afterMs" | "isAnswering">,
): void {
  const one = { client, server, afterMs, isAnswering, bytesRead: 0, sinceMs: performance.now() };
  watched.add(one);
  timer ??= setInterval(check, Math.min(CHECK_MS, afterMs)).unref();
  client.once("end", () => {
    watched.delete(one);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  });
}

function check(): void {
  const nowMs = performance.now();
  for (const one of watched) {
    const { client, server, afterMs } = one;
    const { bytesRead } = client.connection.stream;
    if (client.readyForQuery || bytesRead !== one.bytesRead)
      Object.assign(one, { bytesRead, sinceMs: nowMs });
    else if (nowMs - one.sinceMs >= afterMs && !asked.has(server)) void ask(one);
  }
}

async function ask({ server, isAnswering }: Watched): Promise<void> {
  asked.add(server);
  const answers = await isAnswering();
  asked.delete(server);
  for (const one of watched) {
    if (one.server !== server) continue;
    if (answers) one.sinceMs = performance.now();
    else one.client.connection.stream.destroy(new Error(`no answer within ${one.afterMs} ms from ${server}`));
  }
}
