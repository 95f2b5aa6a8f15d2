import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import type { Readable } from "node:stream";
import tls from "node:tls";
import { findProgram } from "../find-program.ts";

export const TOPIC = "events";

/** Returns the kcat that is installed, or null. */
export function findKcat(): string | null {
  return findProgram("kcat");
}

interface KafkaMessage {
  readonly key: string;
  readonly payload: string;
  readonly partition: number;
  /** Epoch ms. */
  readonly ts: number;
}

/**
 * Starts the brokers that librdkafka has for tests, in a kcat that reads the topic from them: three brokers and four
 * partitions, which speak Kafka's protocol and keep what they are sent.
 */
export async function startKafka(program: string) {
  const flags = [
    "-C",
    "-t",
    TOPIC,
    "-J",
    "-u",
    "-X",
    "test.mock.num.brokers=3",
    "-X",
    "fetch.wait.max.ms=20",
    "-d",
    "mock",
    "-b",
    "none",
  ];
  const child: ChildProcess = spawn(program, flags, { stdio: ["ignore", "pipe", "pipe"] });
  const messages: KafkaMessage[] = [];
  const found = Promise.withResolvers<string>();
  if (child.stdout === null || child.stderr === null) throw new Error("kcat has no output");
  // Not readline, which ends a line at U+2028, too.
  onLines(child.stdout, (line) => messages.push(JSON.parse(line) as KafkaMessage));
  onLines(child.stderr, (line) => {
    const [, servers] = /bootstrap\.servers=([\d.:,]+)/.exec(line) ?? [];
    if (servers !== undefined) found.resolve(servers);
  });
  child.once("exit", (code) => found.reject(new Error(`kcat ended with ${code}`)));
  const brokers = (await found.promise).split(",");
  return {
    brokers,
    messages,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** What happens to one request with messages. error: the broker stores nothing and answers the code. */
export type ProduceFault =
  | { readonly is: "cut-before" | "cut-after" | "silence" }
  | { readonly is: "error"; readonly code: number };

interface ProxyOptions {
  readonly secure?: { readonly key: string; readonly cert: string };
  /** Asked for each request with messages, which has one partition. */
  readonly fault?: (asked: { readonly partition: number; readonly bytes: number }) => ProduceFault | null;
  /** Answers every question for the topic: an error of it, or a broker that leads its only partition. */
  readonly topic?: { readonly error: number } | { readonly leader: string };
  /** The login that is demanded. */
  readonly login?: { readonly user: string; readonly password: string };
}

const int16 = (value: number) => Buffer.from([(value >> 8) & 255, value & 255]);
const int32 = (value: number) => Buffer.concat([int16(value >> 16), int16(value)]);
const text = (value: string) => Buffer.concat([int16(value.length), Buffer.from(value)]);
const nothing = int16(-1);

/** Puts proxies before brokers. Answers name `localhost` and the proxies' ports instead of the brokers'. */
export async function startKafkaProxies(brokers: readonly string[], options: ProxyOptions = {}) {
  const { secure, fault, topic, login } = options;
  const sockets = new Set<Socket>();
  const ports = new Map<number, number>();
  const servers = brokers.map((broker) => {
    const serve = (client: Socket) => accept(client, Number(broker.split(":")[1]));
    const server = secure === undefined ? net.createServer(serve) : tls.createServer({ ...secure }, serve);
    return { server, port: Number(broker.split(":")[1]) };
  });

  function accept(client: Socket, port: number): void {
    const upstream = net.connect(port, "127.0.0.1");
    let isCut = false;
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
    onFrames(upstream, (frame) => (isCut ? client.destroy() : client.write(rename(frame))));
    onFrames(client, (frame) => {
      const reply = (...parts: readonly Buffer[]) => {
        const body = Buffer.concat([frame.subarray(8, 12), ...parts]);
        client.write(Buffer.concat([int32(body.length), body]));
      };
      const key = frame.readInt16BE(4);
      const own = 14 + frame.readInt16BE(12);
      if (key === 17) reply(int16(0), int32(1), text("PLAIN"));
      else if (key === 36) {
        const isRight = frame.includes(`\0${login?.user}\0${login?.password}`);
        // Version 2, with its compact forms: error, message, bytes, lifetime.
        reply(
          Buffer.from([0]),
          int16(isRight ? 0 : 58),
          Buffer.from([0, 1]),
          int32(0),
          int32(0),
          Buffer.from([0]),
        );
      } else if (key === 3 && topic !== undefined) {
        const [host = "", leaderPort] = "leader" in topic ? topic.leader.split(":") : ["127.0.0.1", "1"];
        const broker = [
          int32(1),
          int32(1),
          text(host),
          int32(Number(leaderPort)),
          nothing,
          nothing,
          int32(1),
        ];
        const partition = [int32(1), int16(0), int32(0), int32(1), int32(0), int32(0)];
        const error = "error" in topic ? topic.error : 0;
        const named = [int32(1), int16(error), text(TOPIC), Buffer.from([0])];
        reply(...broker, ...named, ...(error === 0 ? partition : [int32(0)]));
      } else if (key === 0) {
        // No transaction, acks=all, the time limit, one topic, one partition, its messages.
        if (frame.readInt16BE(own) !== -1 || frame.readInt16BE(own + 2) !== -1)
          throw new Error("not acks=all");
        const at = own + 2 + 2 + 4 + 4 + 2 + TOPIC.length + 4;
        const partition = frame.readInt32BE(at);
        const wrong = fault?.({ partition, bytes: frame.readInt32BE(at + 4) }) ?? null;
        if (wrong?.is === "cut-before") client.destroy();
        else if (wrong?.is === "error") {
          const answer = [int32(partition), int16(wrong.code), Buffer.alloc(16, 255), Buffer.alloc(8)];
          reply(int32(1), text(TOPIC), int32(1), ...answer, int32(0));
        } else if (wrong?.is !== "silence") {
          isCut = wrong?.is === "cut-after";
          upstream.write(frame);
        }
      } else upstream.write(frame);
    });
  }

  /** Hosts have nine characters either way, so that lengths stay. */
  function rename(frame: Buffer): Buffer {
    for (const [from, to] of ports) {
      const name = Buffer.concat([text("127.0.0.1"), int32(from)]);
      const at = frame.indexOf(name);
      if (at >= 0) Buffer.concat([text("localhost"), int32(to)]).copy(frame, at);
    }
    return frame;
  }

  for (const { server, port } of servers) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    ports.set(port, (server.address() as AddressInfo).port);
  }
  return {
    brokers: [...ports.values()].map((port) => `localhost:${port}`),
    stop() {
      for (const socket of sockets) socket.destroy();
      for (const { server } of servers) server.close();
    },
  };
}

function onLines(stream: Readable, take: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
}

/** Calls `take` with each whole frame, its length included. */
function onFrames(socket: Socket, take: (frame: Buffer) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0)) {
      const end = 4 + bytes.readInt32BE(0);
      take(Buffer.from(bytes.subarray(0, end)));
      bytes = bytes.subarray(end);
    }
  });
}
