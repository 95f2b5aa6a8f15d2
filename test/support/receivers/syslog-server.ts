import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import net, { type AddressInfo, type Socket } from "node:net";
import path from "node:path";
import tls from "node:tls";
import { findProgram } from "../find-program.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

interface SyslogMessage {
  readonly priority: number;
  readonly time: string;
  readonly params: Readonly<Record<string, string>>;
  readonly text: string;
}

const HEAD =
  /^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) [\x21-\x7e]{1,255} longwatch - waf-event \[longwatch@32473((?: [a-z]+="(?:[^"\\\]]|\\["\\\]])*")+)\] (.*)$/s;

/** Reads a message by the grammar of RFC 5424. */
export function parseMessage(message: string): SyslogMessage {
  const [, priority = "", time = "", params = "", text = ""] = HEAD.exec(message) ?? [];
  if (priority === "") throw new Error(`no message of RFC 5424: ${message.slice(0, 300)}`);
  const pairs = [...params.matchAll(/ ([a-z]+)="((?:\\.|[^"])*)"/gs)];
  const values = pairs.map(([, name = "", value = ""]) => [name, value.replaceAll(/\\(.)/gs, "$1")]);
  return { priority: Number(priority), time, params: Object.fromEntries(values), text };
}

/** Reads whole messages from bytes (RFC 5425, section 4.3), and returns the rest. */
function readFrames(bytes: Buffer): { readonly messages: SyslogMessage[]; readonly rest: Buffer } {
  const messages: SyslogMessage[] = [];
  let rest = bytes;
  for (;;) {
    const space = rest.indexOf(" ");
    if (space < 0) break;
    const head = rest.subarray(0, space).toString();
    if (!/^[1-9]\d*$/.test(head)) throw new Error(`no length: ${head.slice(0, 40)}`);
    const end = space + 1 + Number(head);
    if (rest.length < end) break;
    messages.push(parseMessage(rest.subarray(space + 1, end).toString()));
    rest = rest.subarray(end);
  }
  return { messages, rest };
}

/** What a server does with its next connection. */
type Manner =
  | "read"
  /** Closes as soon as the connection is open: the client is refused. */
  | "refuse"
  /** Reads some bytes and resets the connection, which TLS cannot. */
  | "reset"
  /** Reads some bytes and closes. */
  | "close-early"
  /** Reads everything, and closes after a moment although the client has not closed. */
  | "close-late"
  /** Reads everything and never closes. */
  | "stay";

/** A syslog server that reads whole messages and closes after the client has closed. */
export async function startSyslogServer(secure: tls.TlsOptions | null = null) {
  const messages: SyslogMessage[] = [];
  const manners: Manner[] = [];
  let connections = 0;
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    const manner = manners.shift() ?? "read";
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined);
    let bytes: Buffer = Buffer.alloc(0);
    const read = (chunk: Buffer) => {
      const { messages: found, rest } = readFrames(Buffer.concat([bytes, chunk]));
      messages.push(...found);
      bytes = rest;
    };
    if (manner === "refuse") socket.end();
    else if (manner === "reset") socket.on("data", () => socket.resetAndDestroy());
    else if (manner === "close-early") socket.on("data", () => socket.destroy());
    else socket.on("data", read);
    if (manner === "close-late") setTimeout(() => socket.end(), 200);
    socket.on("end", () => manner === "stay" || socket.end());
  };
  const options = { allowHalfOpen: true };
  const server =
    secure === null
      ? net.createServer(options, serve)
      : tls.createServer({ ...secure, ...options }, (socket) => serve(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    messages,
    /** Of the next connections; after them "read". */
    manners,
    connections: () => connections,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Returns the rsyslog that is installed, or null. */
export function findRsyslog(): string | null {
  return findProgram("rsyslogd");
}

interface RsyslogFiles {
  readonly cert: string;
  readonly key: string;
  /** Authorities of the clients. */
  readonly ca: string;
}

/** Starts a real rsyslog. With files it speaks TLS and demands a certificate of its clients. */
export async function startRsyslog(program: string, files: RsyslogFiles | null) {
  const folder = makeTemporaryFolder("rsyslog");
  const at = (name: string) => path.join(folder, name);
  for (const [name, text] of Object.entries(files ?? {})) writeFileSync(at(`${name}.pem`), text);
  const driver = `DefaultNetstreamDriver="gtls" DefaultNetstreamDriverCAFile="${at("ca.pem")}" DefaultNetstreamDriverCertFile="${at("cert.pem")}" DefaultNetstreamDriverKeyFile="${at("key.pem")}"`;
  const mode = 'StreamDriver.Name="gtls" StreamDriver.Mode="1" StreamDriver.AuthMode="x509/certvalid"';
  const config = `
    global(workDirectory="${folder}" maxMessageSize="64k" ${files === null ? "" : driver})
    module(load="imtcp" ${files === null ? "" : mode})
    template(name="all" type="list") { property(name="rawmsg") constant(value="\\n") }
    ruleset(name="in") { action(type="omfile" file="${at("out.log")}" template="all") }
    input(type="imtcp" port="0" address="127.0.0.1" listenPortFileName="${at("port")}" ruleset="in")`;
  writeFileSync(at("rsyslog.conf"), config);
  const child: ChildProcess = spawn(program, ["-n", "-f", at("rsyslog.conf"), "-i", "NONE"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr?.on("data", (chunk) => (said += String(chunk)));
  const hasPort = () => existsSync(at("port")) && readFileSync(at("port"), "utf8") !== "";
  while (child.exitCode === null && !hasPort()) await new Promise((resolve) => setTimeout(resolve, 20));
  if (child.exitCode !== null || said.includes("could not load module")) throw new Error(said);
  return {
    port: Number(readFileSync(at("port"), "utf8")),
    lines: () =>
      existsSync(at("out.log")) ? readFileSync(at("out.log"), "utf8").split("\n").slice(0, -1) : [],
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
