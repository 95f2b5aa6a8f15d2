import { once } from "node:events";
import net, { type Socket } from "node:net";
import os from "node:os";
import { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import tls from "node:tls";
import { z } from "zod";
import { toError, UsageError } from "#lib/errors.ts";
import { escapeText, escapeUnits } from "#lib/text.ts";
import { pause, untilAborted } from "#lib/waiting.ts";
import { networkSettings, secretText } from "../channel-definition.ts";
import { DeliveryError } from "../delivery-error.ts";
import {
  createGuardedConnector,
  findCertificateMistakes,
  findHostMistakes,
  findReadable,
  toTlsOptions,
} from "../endpoint.ts";
import { POST_TIMEOUT_MS, toUnreachable, withinTime } from "../post.ts";
import { defineSink, type ForwardedEvent, splitBatch, toEventId } from "./sink.ts";

/** Events of one connection. After a broken one, all of its events are sent again. */
const MAX_BYTES = 1_000_000;
const NOTICE = 5;
const MOST_VALUE_CHARS = 255;
const HOSTNAME =
  os
    .hostname()
    .replaceAll(/[^\x21-\x7e]/g, "_")
    .slice(0, 255) || "-";
const HOST_RULE = "must be a host name or an address";

/**
 * Sends events as syslog messages (RFC 5424), each behind its length, over TLS (RFC 5425) or TCP (RFC 6587). Syslog has no
 * acknowledgement. Each connection therefore ends with its batch, and events count as acknowledged when the server has
 * closed the connection after this side did (RFC 5425, section 4.4), and has not reset it: it has read all of them. It may not
 * have stored them.
 */
export const syslog = defineSink({
  kind: "syslog",
  acknowledgedWhen:
    "the server has read it and closed the connection without an error; syslog has no acknowledgement, so the server may lose it after that",
  settings: {
    host: z.string(HOST_RULE).regex(/^[A-Za-z0-9.:-]{1,253}$/, HOST_RULE),
    port: z.int().min(1).max(65_535).default(6_514),
    /** `tcp` is without encryption: private networks only. */
    transport: z.enum(["tls", "tcp"]).default("tls"),
    /** A certificate and its private key in PEM, by which the server knows this client. */
    clientCertificate: secretText.optional(),
    /** 16 is `local0`. */
    facility: z.int().min(0).max(23).default(16),
    /** Every server of RFC 5425 should take 8,192 bytes. A longer event is refused. */
    maxMessageBytes: z.int().min(480).max(MAX_BYTES).default(8_192),
    ...networkSettings,
  },
  example: { host: "syslog.example" },
  open(options) {
    const { name, host, port, transport, facility, maxMessageBytes, network = {} } = options;
    const mistakes = [
      ...findHostMistakes(host, network).map((mistake) => `host: ${mistake}`),
      ...findCertificateMistakes(options.clientCertificate),
      ...findReadable("transport: tcp", transport === "tcp", network),
    ];
    if (mistakes.length > 0) throw new UsageError(mistakes.map((one) => `destination ${name}: ${one}`));
    const address = `${host}:${port}`;
    const connect = createGuardedConnector(network);
    /** Opens a connection. With TLS, `stream` is the encrypted one over the checked socket. */
    const open = async (signal: AbortSignal): Promise<Connection> => {
      const { promise, resolve, reject } = Promise.withResolvers<Socket>();
      connect({ hostname: host, host, port: String(port), protocol: "tcp:" }, (...[error, socket]) =>
        error === null ? resolve(socket) : reject(error),
      );
      const socket = await promise;
      if (transport === "tcp") return { socket, stream: socket };
      const servername = net.isIP(host) === 0 ? { servername: host } : {};
      const stream = tls.connect({
        ...toTlsOptions(network, options.clientCertificate),
        ...servername,
        host,
        socket: toDuplex(socket),
      });
      try {
        await once(stream, "secureConnect", { signal });
        return { socket, stream };
      } catch (thrown) {
        socket.destroy();
        throw thrown;
      }
    };
    let wasRead = false;
    return {
      count: null,
      send(events, { signal }) {
        const messages = events.map((event) => toMessage(event, facility * 8 + NOTICE));
        const lengths = messages.map((message) => Buffer.byteLength(message));
        return splitBatch({
          sizes: lengths,
          maxBytes: MAX_BYTES,
          maxEventBytes: maxMessageBytes,
          async send(positions) {
            const frames = positions.map((position) => `${lengths[position]} ${messages[position]}`);
            const timeoutMs = options.timeoutMs ?? POST_TIMEOUT_MS;
            const settleMs = wasRead ? SETTLE_MS : FIRST_SETTLE_MS;
            await withinTime(
              { host: address, timeoutMs, signal },
              (until) => transmit(() => open(until), { frames: frames.join(""), settleMs, address }, until),
              toFailure,
            ).then(
              () => (wasRead = true),
              (thrown: unknown) => {
                wasRead = false;
                throw thrown;
              },
            );
            return { is: "stored" };
          },
        });
      },
    };
  },
});

interface Connection {
  readonly socket: Socket;
  readonly stream: Duplex;
}

/**
 * Returns a stream over the socket. TLS over the socket itself would hide what happens to the socket after the server's
 * `close_notify`: a server that closes without having read everything resets the connection.
 */
function toDuplex(socket: Socket): Duplex {
  const duplex = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
  });
  socket.on("data", (chunk) => {
    if (!duplex.push(chunk)) socket.pause();
  });
  socket.once("end", () => duplex.push(null));
  socket.once("error", (error) => duplex.destroy(error));
  return duplex;
}

/**
 * A server refuses a client only after the handshake, and the refusal takes as long as an answer: at least this time. A server that is
 * slow takes longer, so the first connection, and the first one after a failure, leaves it more time.
 */
const SETTLE_MS = 50;
const FIRST_SETTLE_MS = 1_000;
/** Turns of the event loop in which the end of a connection passes through the socket and TLS. */
const TURNS = 4;

/** Sends everything over a new connection, and resolves when first this side and then the server has closed it. */
async function transmit(
  open: () => Promise<Connection>,
  { frames, settleMs, address }: { frames: string; settleMs: number; address: string },
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  const { socket, stream } = await open();
  const answerMs = 2 * (performance.now() - startedAt);
  let isClosing = false;
  const failed = Promise.withResolvers<never>();
  for (const one of new Set([socket, stream])) {
    one.on("error", failed.reject);
    one.once("end", () => isClosing || failed.reject(closedEarly(address)));
  }
  const run = async () => {
    stream.resume();
    await new Promise((resolve) => void stream.write(frames, resolve));
    await pause(settleMs + answerMs, signal);
    // A process that is busy runs its timers before it reads what has come meanwhile.
    for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
    isClosing = true;
    stream.end();
    // An error of TLS comes after the end of the socket that brought it.
    await Promise.all([finished(socket), finished(stream)]);
  };
  try {
    await untilAborted(Promise.race([run(), failed.promise]), signal);
  } finally {
    socket.destroy();
    stream.destroy();
  }
}

function closedEarly(address: string): DeliveryError {
  const text = `${address} closed the connection before it had read all events: it stops, or refuses this client (client_certificate)`;
  return new DeliveryError({ code: "ENDPOINT_UNREACHABLE", disposition: "retry", text });
}

function toFailure(thrown: unknown, address: string): DeliveryError {
  const { code } = toError(thrown) as NodeJS.ErrnoException;
  return code === "EPIPE" || code === "ECONNRESET" ? closedEarly(address) : toUnreachable(thrown, address);
}

function toMessage(event: ForwardedEvent, priority: number): string {
  const { ruleId, action } = event.fields;
  const facts = { id: toEventId(event), zone: String(event.zoneId), rule: ruleId, action };
  const params = Object.entries(facts).map(([key, value]) => ` ${key}="${escapeValue(value)}"`);
  const head = `<${priority}>1 ${new Date(event.occurredAt).toISOString()} ${HOSTNAME} longwatch - waf-event`;
  // The number of examples (RFC 5612): Longwatch has no number of an enterprise.
  return `${head} [longwatch@32473${params.join("")}] ${toAscii(event.body)}`;
}

/** Returns a value of structured data: one line, with the escapes of RFC 5424, section 6.3.3. */
function escapeValue(value: string): string {
  return escapeText(value.slice(0, MOST_VALUE_CHARS)).replaceAll(/["\\\]]/g, "\\$&");
}

/** Returns the same JSON in ASCII on one line: no byte order mark is needed, and no character moves a cursor. */
function toAscii(json: string): string {
  return json.replaceAll(/[\t\r\n]+/g, " ").replaceAll(/[^\x20-\x7e]+/g, escapeUnits);
}
