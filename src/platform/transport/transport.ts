/** The transport of all operations: connections, attempts and the priority of requests. */
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { type Clock, systemClock } from "#lib/clock.ts";
import { UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";
import { startDeadline } from "#lib/waiting.ts";
import { type AttemptReport, type AttemptSettings, runAttempts } from "./attempts.ts";
import { type EdgeCall, openGate, type RequestGate } from "./call.ts";
import { type CsvReply, guardStream, receiveCsv } from "./csv.ts";
import { exchange } from "./exchange.ts";
import { type EdgeReply, receiveReply } from "./reply.ts";

const CONNECT_TIMEOUT_MS = 10_000;

export interface EdgeTransportOptions {
  /** http or https, with an optional path prefix. */
  readonly baseUrl: string;
  /** Revealed at each request, so that it may change. */
  readonly accessKey: Secret;
  /** Admits every attempt. Default: open. */
  readonly gate?: RequestGate;
  /**
   * Total time of a call: connecting, every attempt, every pause between them, the whole body; without the wait at
   * the gate. Default 30 s.
   */
  readonly timeoutMs?: number;
  /** Maximum size of a decompressed body. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Maximum number of sockets; further calls queue. Default 8. */
  readonly connections?: number;
  /** Includes the first attempt. Default 4. */
  readonly maxAttempts?: number;
  readonly clock?: Clock;
  /** Returns a number from 0 to 1, exclusive, for the jitter of the back-off. */
  readonly random?: () => number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onAttempt?: (report: AttemptReport) => void;
  /** Called with an oddity of an answer that was used all the same. */
  readonly onWarning?: (text: string) => void;
}

export interface StreamLimits {
  /** Longest silence of the platform, before the first byte and between any two bytes. */
  readonly idleTimeoutMs: number;
  /** Total time of the stream, including attempts before the first byte, without the gate; null for no limit. */
  readonly timeoutMs: number | null;
}

export interface EdgeTransport {
  /** Returns a whole answer. Throws EdgeError, or the signal's reason when the caller aborts. */
  request(call: EdgeCall, signal?: AbortSignal): Promise<EdgeReply>;
  /** Returns a file as it arrives. Retries end with the first byte. Leaving the loop closes the connection. */
  stream(call: EdgeCall, limits: StreamLimits, signal?: AbortSignal): Promise<CsvReply>;
  /** Reports an oddity of an answer that is used all the same. */
  warn(text: string): void;
  /** Aborts every running call and closes the sockets. */
  close(): Promise<void>;
}

function readSettings(options: EdgeTransportOptions): AttemptSettings {
  return {
    maxAttempts: options.maxAttempts ?? 4,
    timeoutMs: options.timeoutMs ?? 30_000,
    gate: options.gate ?? openGate,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    sleep: options.sleep ?? ((ms, signal) => delay(ms, undefined, { signal })),
    onAttempt: options.onAttempt ?? (() => {}),
    hideKey: (text) => text.replaceAll(options.accessKey.reveal(), "[secret]"),
  };
}

/**
 * Returns the transport, which every request to the platform uses: pooled sockets, total deadlines, size limits,
 * retries, failures as EdgeError.
 */
export function createEdgeTransport(options: EdgeTransportOptions): EdgeTransport {
  const { origin, basePath } = checkConnection(options.baseUrl, options.accessKey);
  const settings = readSettings(options);
  const maxBodyBytes = options.maxBodyBytes ?? 64 * 1_024 * 1_024;
  const connection = { basePath, accessKey: options.accessKey, clock: settings.clock };
  const pool = new Pool(origin, {
    connections: options.connections ?? 8,
    allowH2: false,
    connect: { timeout: Math.min(settings.timeoutMs ?? CONNECT_TIMEOUT_MS, CONNECT_TIMEOUT_MS) },
  });
  const closing = new AbortController();

  return {
    async request(call, signal) {
      const deadline = startDeadline(settings.timeoutMs, signal, closing.signal);
      try {
        return await runAttempts(call, settings, deadline, signal, async (until) => {
          const answer = await exchange(pool, connection, call, 0, until);
          return receiveReply(call, answer, maxBodyBytes, until);
        });
      } finally {
        deadline.release();
      }
    },

    async stream(call, limits, signal) {
      const deadline = startDeadline(limits.timeoutMs, signal, closing.signal);
      const once = { ...settings, timeoutMs: limits.timeoutMs };
      try {
        const reply = await runAttempts(call, once, deadline, signal, async (until) => {
          const answer = await exchange(pool, connection, call, limits.idleTimeoutMs, until);
          return receiveCsv(answer, until);
        });
        return { ...reply, chunks: guardStream(call, once, deadline, signal, reply) };
      } catch (error) {
        deadline.release();
        throw error;
      }
    },

    warn: options.onWarning ?? (() => undefined),

    async close() {
      closing.abort();
      await pool.destroy();
    },
  };
}

/** Splits the base address into origin and path prefix. Throws a UsageError naming every mistake, never the key. */
function checkConnection(baseUrl: string, accessKey: Secret): { origin: string; basePath: string } {
  const mistakes: string[] = [];
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    mistakes.push(
      `the platform's address ${JSON.stringify(baseUrl.replace(/\/\/[^/@]*@/, "//"))} must be an http or https URL`,
    );
  } else if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    mistakes.push(`the platform's address on ${url.host} must hold no user, password, query or fragment`);
  }
  if (!/^[\u0021-\u007e]+$/.test(accessKey.reveal())) {
    mistakes.push("the access key must be printable ASCII without blanks, and not empty");
  }
  if (mistakes.length > 0 || url === null) throw new UsageError(mistakes);
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, "") };
}
