/** Limits the connections of each network. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BlockList, isIPv6, type Socket } from "node:net";
import { PROBLEM_TYPE, problemOf } from "../errors/problem.ts";
import { SECURITY_HEADERS } from "../page/add-console.ts";
import { networkOf } from "./origin.ts";

export interface ConnectionLimits {
  /** Maximum number of connections. More would use up the files that the connections to the databases need. */
  readonly most: number;
  /** Number of these connections that are reserved for probes and for callers with a key. */
  readonly reserved: number;
  /** Maximum number of connections of one IPv4 address or IPv6 /64. */
  readonly perAddress: number;
  /** Time limit to send a valid key over a reserved connection. Without one it ends with its first answer. */
  readonly provingMs: number;
  /** Time limit for a client to read some of its answer, or to send something while no request is in progress. */
  readonly stallMs: number;
  /** Maximum number of requests of one connection in progress. */
  readonly pipelined: number;
}

const CONNECTION_LIMITS: ConnectionLimits = {
  most: 1_000,
  reserved: 100,
  perAddress: 250,
  provingMs: 2_000,
  stallMs: 30_000,
  pipelined: 8,
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Connection {
  readonly network: string;
  /** Number of requests in progress. */
  active: number;
  /** True if a valid key was sent over the connection. */
  isKnown: boolean;
  isReserved: boolean;
}

export interface Connections {
  createServer(handler: Handler, options: { readonly requestTimeoutMs: number }): Server;
  /** Called for every admitted request. Returns whether the connection ends with the answer. */
  noteRequest(socket: Socket, hasKey: boolean): boolean;
}

/**
 * Limits the connections of all servers that it creates. If an address has all of its connections, or nearly all are
 * taken, a new connection replaces the one that has been idle for longest. Connections that never sent a valid key go
 * first. If none is idle, the new connection is refused or gets a reserved place.
 */
export function createConnections(
  trustedProxies: readonly string[],
  limits: ConnectionLimits = CONNECTION_LIMITS,
): Connections {
  const connections = new Map<Socket, Connection>();
  const ofNetwork = new Map<string, Set<Socket>>();
  /** Idle connections, in the order in which they became idle. */
  const idle = { known: new Set<Socket>(), unknown: new Set<Socket>() };
  const proxies = toBlockList(trustedProxies);
  const idleOf = ({ isKnown }: Connection) => (isKnown ? idle.known : idle.unknown);

  function forget(socket: Socket): void {
    const one = connections.get(socket);
    if (one === undefined) return;
    connections.delete(socket);
    idleOf(one).delete(socket);
    const others = ofNetwork.get(one.network);
    others?.delete(socket);
    if (others?.size === 0) ofNetwork.delete(one.network);
  }

  function drop(socket: Socket | undefined): boolean {
    if (socket === undefined) return false;
    forget(socket);
    socket.destroy();
    return true;
  }

  function isFull(network: string, sockets: ReadonlySet<Socket>): boolean {
    if (network === "proxy" || sockets.size < limits.perAddress) return false;
    const oldest = [...sockets].find((socket) => connections.get(socket)?.active === 0);
    return !drop(oldest);
  }

  function take(socket: Socket): void {
    const { remoteAddress = "" } = socket;
    const network = isIn(proxies, remoteAddress) ? "proxy" : networkOf({ ip: remoteAddress, socket });
    const sockets = ofNetwork.get(network) ?? new Set();
    if (isFull(network, sockets)) return void socket.destroy();
    const isCrowded = connections.size >= limits.most - limits.reserved;
    const [oldest] = idle.unknown.size > 0 ? idle.unknown : idle.known;
    const isReserved = isCrowded && !drop(oldest);
    ofNetwork.set(network, sockets.add(socket));
    connections.set(socket, { network, active: 0, isKnown: false, isReserved });
    idle.unknown.add(socket);
    socket.once("close", () => forget(socket));
    if (isReserved) setTimeout(() => proveOrEnd(socket), limits.provingMs).unref();
  }

  function proveOrEnd(socket: Socket): void {
    const one = connections.get(socket);
    if (one?.isReserved === true && one.active === 0) drop(socket);
    else if (one?.isReserved === true) setTimeout(() => proveOrEnd(socket), limits.provingMs).unref();
  }

  function admit(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    const one = connections.get(socket);
    if (one === undefined) return false;
    idleOf(one).delete(socket);
    one.active++;
    response.once("close", () => {
      one.active--;
      if (one.active === 0 && connections.has(socket)) idleOf(one).add(socket);
    });
    if (one.active <= limits.pipelined) return true;
    // The earlier answers are still sent; later requests stay unanswered.
    if (one.active === limits.pipelined + 1) refusePipelined(response, limits.pipelined);
    return false;
  }

  /** Ends a connection on which a client reads nothing. Node does not call this for a slow reader. */
  function endStalled(socket: Socket): void {
    const isAtWork = (connections.get(socket)?.active ?? 0) > 0 && socket.writableLength === 0;
    if (isAtWork) socket.setTimeout(limits.stallMs);
    else socket.destroy();
  }

  return {
    createServer(handler, { requestTimeoutMs: requestTimeout }) {
      // Node looks for late requests only every 30 s by itself.
      const connectionsCheckingInterval = Math.min(requestTimeout, 5_000);
      const server = createServer({ requestTimeout, connectionsCheckingInterval }, (request, response) => {
        if (admit(request, response)) handler(request, response);
      });
      server.maxConnections = limits.most;
      server.keepAliveTimeout = KEEP_ALIVE_MS;
      server.on("connection", take);
      return server.setTimeout(limits.stallMs, endStalled);
    },
    noteRequest(socket, hasKey) {
      const one = connections.get(socket);
      if (one === undefined) return true;
      one.isKnown ||= hasKey;
      one.isReserved &&= !hasKey;
      return one.isReserved;
    },
  };
}

/** Longer than proxies keep their connections, so that a proxy never uses a connection that is being closed. */
const KEEP_ALIVE_MS = 72_000;

function refusePipelined(response: ServerResponse, pipelined: number): void {
  const detail = `A connection may have at most ${pipelined} requests in progress.`;
  const body = JSON.stringify({ ...problemOf(429), detail });
  response
    .writeHead(429, { "content-type": PROBLEM_TYPE, connection: "close", "retry-after": "1" })
    .end(body);
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

function isIn(list: BlockList, address: string): boolean {
  return address !== "" && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

const CLIENT_ERRORS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Time limit for the answer to arrive and for the client to end its side. */
const LINGER_MS = 1_000;

/** Answers on the bare socket if there is no request yet. Closes the socket soon after, whatever the client does. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = problemOf(CLIENT_ERRORS[error.code ?? ""] ?? 400);
  const body = JSON.stringify(problem);
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": PROBLEM_TYPE,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join("")}\r\n${body}`);
  // Ended is half closed: a client that never ends its own half would keep the connection for as long as it likes.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
