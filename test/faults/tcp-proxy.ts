import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { overTcp } from "../support/over-tcp.ts";
import { createCommitWatch } from "./commit-watch.ts";

/** How bytes are relayed; `client` is the side that connected to the proxy. */
interface Behaviour {
  /** No byte passes in either direction, and neither side is notified. */
  readonly isStalled: boolean;
  /** Half open: the service receives the client's bytes, but the client receives none of the service's. */
  readonly isDeaf: boolean;
  readonly delayMs: number;
  readonly bytesPerSecond: number;
}

export interface TcpProxy {
  readonly port: number;
  /** Returns the same address by way of the proxy. */
  through(url: string): string;
  behave(change: Partial<Behaviour>): void;
  /** Resets every connection. New ones are accepted. */
  cut(): void;
  /** Resets every connection and refuses new ones until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** Sets the target of new connections. */
  leadTo(targetPort: number): void;
  /**
   * Cuts the connection of the next COMMIT that `isChosen` selects: before Postgres receives it, or after it is done.
   */
  cutCommit(when: "before" | "after", isChosen?: () => boolean): { wasCut(): boolean };
  close(): Promise<void>;
}

const CALM: Behaviour = { isStalled: false, isDeaf: false, delayMs: 0, bytesPerSecond: Infinity };

/** Starts a TCP relay to a service of this machine that fails as networks do. */
export async function startTcpProxy(firstTargetPort: number): Promise<TcpProxy> {
  let targetPort = firstTargetPort;
  const sockets = new Set<Socket>();
  let behaviour = CALM;
  let changed = Promise.withResolvers<void>();
  let commitCut: { when: "before" | "after"; isChosen: () => boolean; done: boolean } | null = null;

  /** Relays chunks one after the other, so that a delay never reorders them. */
  function pipe(from: Socket, to: Socket, see: (chunk: Buffer) => boolean, isAnswer: boolean): void {
    let turn = Promise.resolve();
    from.on("data", (chunk: Buffer) => {
      turn = turn.then(async () => {
        while (behaviour.isStalled && !to.destroyed) await changed.promise;
        const { delayMs, bytesPerSecond, isDeaf } = behaviour;
        if (isAnswer && isDeaf) return;
        const pauseMs = delayMs + (chunk.length / bytesPerSecond) * 1_000;
        if (pauseMs > 0) await delay(pauseMs);
        if (see(chunk) && !to.destroyed) to.write(chunk);
      });
    });
    from.on("error", () => undefined);
    from.on("close", () => {
      sockets.delete(from);
      // Received bytes are sent before the end is.
      void turn.then(() => to.destroySoon());
    });
    sockets.add(from);
  }

  // Without Nagle's delay: small pieces held back for 40 ms in each direction would make every query slow.
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: targetPort, host: "127.0.0.1", noDelay: true });
    const watch = createCommitWatch();
    const take = (when: "before" | "after") => {
      if (commitCut === null || commitCut.done || commitCut.when !== when || !commitCut.isChosen())
        return false;
      commitCut.done = true;
      near.resetAndDestroy();
      far.resetAndDestroy();
      return true;
    };
    pipe(near, far, (chunk) => !(watch.asks(chunk) && take("before")), false);
    pipe(far, near, (chunk) => !(watch.answers(chunk) && take("after")), true);
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const refuse = async () => {
    cut();
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    cut();
    await closed;
  };
  const behave = (change: Partial<Behaviour>) => {
    behaviour = { ...behaviour, ...change };
    changed.resolve();
    changed = Promise.withResolvers();
  };

  return {
    port,
    through(url) {
      const relayed = new URL(overTcp(url));
      relayed.hostname = "127.0.0.1";
      relayed.port = String(port);
      return relayed.href.replace(/\/$/, "");
    },
    behave,
    cut,
    refuse,
    accept: () => listen(port),
    leadTo(port) {
      targetPort = port;
    },
    cutCommit(when, isChosen = () => true) {
      const mine = { when, isChosen, done: false };
      commitCut = mine;
      return { wasCut: () => mine.done };
    },
    async close() {
      behave(CALM);
      await refuse();
    },
  };
}
