import { defineChannel, type Notifier } from "../../channel-definition.ts";
import { DeliveryError } from "../../delivery-error.ts";
import { MEMBER_ROWS, renderTerminal } from "./render-terminal.ts";
import { paintColour, paintPlain } from "./terminal-style.ts";

/** The part of a writable stream that is needed. A TTY also has a width. */
export interface TerminalStream {
  write(text: string, done: (error?: Error | null) => void): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
  /** The terminal's own color support, which respects NO_COLOR and TERM. */
  readonly hasColors?: () => boolean;
  /** The command that starts the program for readers of the stream; default `longwatch`. */
  readonly command?: string;
}

export interface TerminalContext {
  readonly terminal: TerminalStream;
  /** The console's address on this machine, for messages without a link to it. Null: none, or it is not known yet. */
  readonly localUrl?: () => string | null;
}

const settings = {};
const DEFAULT_COLUMNS = 100;

/** Prints alerts where the service runs. One write per alert, so nothing gets between its lines. */
function createSender({ terminal: stream, localUrl }: TerminalContext): Notifier["send"] {
  return async (message, { signal }) => {
    signal.throwIfAborted();
    const isTTY = stream.isTTY === true;
    const text = renderTerminal(message, {
      // Some terminals state no width, or 0: they get the default.
      columns: isTTY ? stream.columns || DEFAULT_COLUMNS : DEFAULT_COLUMNS,
      paint: isTTY && stream.hasColors?.() !== false ? paintColour : paintPlain,
      localUrl: localUrl?.() ?? null,
      ...(stream.command === undefined ? {} : { command: stream.command }),
    });
    await write(stream, text, signal);
    return { providerReference: null };
  };
}

/** Waits until the stream has accepted the text, so that a stopped terminal does not count as delivered. */
function write(stream: TerminalStream, text: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    stream.write(text, (error) => {
      signal.removeEventListener("abort", onAbort);
      if (error === undefined || error === null) return resolve();
      const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
      reject(
        new DeliveryError({
          code: "STREAM_FAILED",
          disposition: "retry",
          text: `the stream failed (${code})`,
        }),
      );
    });
  });
}

export const terminal = defineChannel({
  kind: "terminal",
  settings,
  example: {},
  capabilities: {
    rate: { perMinute: 60, digest: { in: "list", maxChars: 20_000, charsBeside: 2 } },
    longestPauseMs: 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: null, memberRows: MEMBER_ROWS },
  },
  render: (message) => [renderTerminal(message, { columns: DEFAULT_COLUMNS, paint: paintPlain })],
  createSender,
});
