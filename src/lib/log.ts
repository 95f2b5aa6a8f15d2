import pino from "pino";
import { createLogCleaner } from "./log-fields.ts";
import { messageOf } from "./message-of.ts";
import { prettyLine } from "./pretty-line.ts";
import type { Secret } from "./secret.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The part of the logger that the service uses: fields first, then an event in the past tense. */
export type Log = Pick<pino.Logger, LogLevel>;

export interface LogOptions {
  readonly level: LogLevel;
  /** True for lines for people at a terminal instead of JSON; `coloured` if the terminal has colours. */
  readonly pretty?: boolean | "coloured";
  /** Returns the terminal's current width. Lines for people break at words there. Undefined or 0: not known. */
  readonly columns?: () => number | undefined;
  /** Gets whole lines; process.stderr if stdout is for a person. */
  readonly stream: { write(line: string): unknown };
  /** Values to hide wherever they occur, for example in a library's message; includes values that are added later. */
  readonly secrets?: readonly Secret[];
}

/**
 * Returns a log of JSON lines with ISO times. Fields and messages are cleaned before they are written, so text of any
 * origin may be passed. An error may be a field of any name. It is logged with code, disposition and status, never
 * with requests or rows.
 */
export function createLog(options: LogOptions): Log {
  const { level, pretty = false, stream, secrets = [] } = options;
  const columns = () => options.columns?.() || Number.POSITIVE_INFINITY;
  const cleaner = createLogCleaner(() => secrets.map((secret) => secret.reveal()));
  const lines =
    pretty !== false
      ? { write: (line: string) => stream.write(prettyLine(line, pretty === "coloured", columns())) }
      : stream;
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // pino's own redaction hides only listed paths in their exact case, and nothing within a string.
      formatters: { level: (label) => ({ level: label }), log: cleaner.fields },
      // The formatter must see errors before a serializer changes them.
      serializers: { err: (value: unknown) => value },
      hooks: {
        logMethod(args, method) {
          const [first, second] = args as unknown[];
          const fields = first instanceof Error ? { err: first } : typeof first === "object" ? first : {};
          // A message is always passed, because pino would otherwise use an error's own message unchanged.
          const own = first instanceof Error ? messageOf(first) : "";
          const event = [second, first, own].find((part) => typeof part === "string") ?? "";
          method.call(this, fields ?? {}, cleaner.text(event));
        },
      },
    },
    { write: (line) => void lines.write(line) },
  );
}
