import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface StreamEvent {
  readonly id: number | null;
  readonly event: string | null;
  readonly data: Record<string, unknown> | null;
}

export interface OpenStream {
  readonly socket: Socket;
  readonly status: number;
  readonly head: string;
  /** Blocks so far, comments left out. */
  readonly blocks: readonly StreamEvent[];
  /** Settles once `isDone` holds for the blocks, or rejects when the stream ends before. */
  until(isDone: (blocks: readonly StreamEvent[]) => boolean): Promise<readonly StreamEvent[]>;
  /** The server has ended the stream or cut it off. */
  ended(): Promise<void>;
}

/** The stream over a bare socket, as any client of Server-Sent Events reads it. */
export async function openStream(
  port: number,
  { key, lastId, query = "" }: { key: string; lastId?: number | undefined; query?: string },
): Promise<OpenStream> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const last = lastId === undefined ? "" : `Last-Event-ID: ${lastId}\r\n`;
  socket.write(`GET /api/v1/alerts/stream${query} HTTP/1.0\r\nHost: x\r\nAccessKey: ${key}\r\n${last}\r\n`);
  let text = "";
  let isEnded = false;
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const one of waiting) one();
  };
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    text += chunk;
    wake();
  });
  socket.on("close", () => {
    isEnded = true;
    wake();
  });
  const wait = (isDone: () => boolean, what: string) =>
    new Promise<void>((resolve, reject) => {
      const check = () => {
        if (!isDone() && !isEnded) return;
        waiting.delete(check);
        if (isDone()) resolve();
        else reject(new Error(`the stream ended before ${what}: ${text.slice(0, 2_000)}`));
      };
      waiting.add(check);
      check();
    });
  await wait(() => text.includes("\r\n\r\n"), "its head");
  const split = text.indexOf("\r\n\r\n");
  const head = text.slice(0, split);
  const readBlocks = () =>
    text
      .slice(split + 4)
      .split("\n\n")
      .slice(0, -1)
      .flatMap(toBlock);
  return {
    socket,
    head,
    status: Number(head.split(" ")[1]),
    get blocks() {
      return readBlocks();
    },
    async until(isDone) {
      await wait(() => isDone(readBlocks()), "what was waited for");
      return readBlocks();
    },
    ended: () => wait(() => isEnded, "its end"),
  };
}

function toBlock(block: string): StreamEvent[] {
  const fields = new Map(
    block
      .split("\n")
      .filter((line) => !line.startsWith(":"))
      .map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]),
  );
  const [id, event, data] = [fields.get("id"), fields.get("event"), fields.get("data")];
  if (id === undefined) return [];
  return [
    {
      id: Number(id),
      event: event ?? null,
      data: data === undefined ? null : (JSON.parse(data) as Record<string, unknown>),
    },
  ];
}

/** The numbers of the alert events among these. */
export function sequencesOf(blocks: readonly StreamEvent[]): number[] {
  return blocks.flatMap(({ event, id }) => (event === "alert" && id !== null ? [id] : []));
}
