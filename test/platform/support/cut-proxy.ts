import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { overTcp } from "../../support/over-tcp.ts";

/** A TCP proxy in front of `url` that can be cut: what is open breaks, what is new is refused, until it is healed; or frozen. */
export async function startCutProxy(url: string) {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let state: "open" | "cut" | "frozen" = "open";
  const server = createServer({ noDelay: true }, (near) => {
    if (state === "cut") near.destroy();
    else connectThrough(near);
  });
  function connectThrough(near: Socket): void {
    const far = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (chunk) => {
        if (state === "open") to.write(chunk);
      });
    }
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const through = new URL(overTcp(url));
  through.hostname = "127.0.0.1";
  through.port = String((server.address() as AddressInfo).port);
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };

  return {
    url: through.href,
    cut(): void {
      state = "cut";
      breakAll();
    },
    /** Connections stay, new ones are taken, and nothing gets through. */
    freeze(): void {
      state = "frozen";
    },
    heal(): void {
      state = "open";
      breakAll();
    },
    async close(): Promise<void> {
      breakAll();
      server.close();
      await once(server, "close");
    },
  };
}
