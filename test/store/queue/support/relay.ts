import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Relay {
  readonly port: number;
  /** Resets every connection and refuses new ones. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Stops passing bytes in both directions without closing the connections. */
  hold(): void;
  release(): void;
  close(): Promise<void>;
}

/** A TCP relay to a service on this machine, that fails as a network does. */
export async function startRelay(targetPort: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let isStalled = false;
  // Without delay: small pieces held back for 40 ms each, both ways, would make every query slow.
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: targetPort, host: "127.0.0.1", noDelay: true });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("data", (chunk) => void other.write(chunk));
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      if (isStalled) socket.pause();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  async function cut() {
    for (const socket of sockets) socket.resetAndDestroy();
    if (!server.listening) return;
    server.close();
    await once(server, "close");
  }

  return {
    port,
    cut,
    async restore() {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    hold() {
      isStalled = true;
      for (const socket of sockets) socket.pause();
    },
    release() {
      isStalled = false;
      for (const socket of sockets) socket.resume();
    },
    close: cut,
  };
}
