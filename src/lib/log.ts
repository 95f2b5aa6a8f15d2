import pino from "pino";
import { createLogCleaner } from "./log-fields.ts";
import { messageOf } from "./message-of.ts";
import { prettyLine } from "./pretty-line.ts";
import type { Secret } from "./secret.ts";

/** As much of the logger as the service uses: fields first, then an event in the past tense. */
export type Log = Pick<pino.Logger, "debug" | "info" | "warn" | "error">;

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error";
  /** For people at a terminal instead of JSON, in colours where it has them. */
  readonly pretty?: boolean | "coloured";
  /** Width of the terminal now; lines for people break at words there. Undefined or 0: not known. */
  readonly columns?: () => number | undefined;
  /** Given whole lines; process.stderr where stdout belongs to a person. */
  readonly stream: { write(line: string): unknown };
  /** Values that are hidden wherever they turn up, in a message of a library for instance; also those added later. */
  readonly secrets?: readonly Secret[];
}

/**
 * JSON lines with ISO times. Fields and messages are cleaned before they are written: text of any origin may be passed.
 * An error may be a field of any name; it is logged with code, disposition and status, never with requests or rows.
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
      // Not pino's own redaction: it hides listed paths only, in their exact case, and nothing inside a string.
      formatters: { level: (label) => ({ level: label }), log: cleaner.fields },
      // The formatter sees errors before they are turned into anything.
      serializers: { err: (value: unknown) => value },
      hooks: {
        logMethod(args, method) {
          const [first, second] = args as unknown[];
          const fields = first instanceof Error ? { err: first } : typeof first === "object" ? first : {};
          // Always with a message: pino would take an error's own, as it is.
          const own = first instanceof Error ? messageOf(first) : "";
          const event = [second, first, own].find((part) => typeof part === "string") ?? "";
          method.call(this, fields ?? {}, cleaner.text(event));
        },
      },
    },
    { write: (line) => void lines.write(line) },
  );
}
