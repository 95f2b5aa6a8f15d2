import type { Socket } from "node:net";
import { PROBLEM_TYPE, problemOf } from "../errors/problem.ts";
import { SECURITY_HEADERS } from "../security-headers.ts";

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
