/** The log: levels, fields without secrets, and lines for people. */
import pino from "pino";
import { isFailedQuery, messageOf } from "./errors.ts";
import type { Secret } from "./secret.ts";
import { escapeText, shortenText } from "./text.ts";

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

const MAX_TEXT_CHARS = 2_000;
const MAX_DEPTH = 5;
const MAX_ITEMS = 50;
const HIDDEN = "[secret]";

/** Matches whole names, ignoring case: `errorKey` and `dedupeKey` are facts, `key` is a key. */
const SECRET_NAME =
  /^(access[-_]?key|api[-_]?key|key|secret|password|passwd|token|authorization|cookie|set-cookie|headers?|body)$/i;

/** Only these members of an error are logged, because a library may attach requests, headers and rows to its errors. */
const ERROR_FIELDS = [
  "code",
  "disposition",
  "waitMs",
  "status",
  "errorKey",
  "field",
  "operation",
  "requestId",
];

/**
 * Returns a cleaner of log fields: no secrets, no control characters, limited size. `secrets` returns the values to
 * hide wherever they occur; it is called every time, because a configuration that is read again may have other
 * secrets.
 */
function createLogCleaner(secrets: () => readonly string[]) {
  function text(value: string): string {
    const hidden = secrets().reduce(
      (shown, secret) => (secret === "" ? shown : shown.replaceAll(secret, HIDDEN)),
      value,
    );
    return shortenText(hidden.replaceAll(/\/\/[^\s/@]*@/g, `//${HIDDEN}@`), MAX_TEXT_CHARS);
  }

  function error(thrown: Error, depth: number): Record<string, unknown> {
    const facts = ERROR_FIELDS.flatMap((name) => {
      const value: unknown = Reflect.get(thrown, name);
      return value === undefined || value === null ? [] : [[name, clean(value, depth + 1)] as const];
    });
    return {
      type: text(thrown.name),
      message: text(messageOf(thrown)),
      ...(isFailedQuery(thrown) ? { query: text(thrown.query) } : {}),
      ...Object.fromEntries(facts),
      // The message of an error thrown on purpose is enough; any other error needs its stack.
      ...("disposition" in thrown ? {} : { stack: text(frames(thrown)) }),
      ...(thrown.cause === undefined ? {} : { cause: clean(thrown.cause, depth + 1) }),
      ...(thrown instanceof AggregateError ? { errors: clean(thrown.errors, depth + 1) } : {}),
    };
  }

  function clean(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "string":
        return text(value);
      case "object":
        return value === null ? null : object(value, depth);
      case "bigint":
        return value.toString();
      case "number":
      case "boolean":
      case "undefined":
        return value;
      case "symbol":
      case "function":
      default:
        return `[${typeof value}]`;
    }
  }

  function object(value: object, depth: number): unknown {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[no date]" : value.toISOString();
    if (value instanceof URL) return text(value.href);
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (depth >= MAX_DEPTH) return "[deeper]";
    if (value instanceof Error) return error(value, depth);
    if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => clean(item, depth + 1));
    if ("toJSON" in value && typeof value.toJSON === "function") return clean(value.toJSON(), depth + 1);
    return record(value, depth);
  }

  function record(value: object, depth: number): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(value)
        .slice(0, MAX_ITEMS)
        .map(([name, field]) => [
          shortenText(name, 100),
          SECRET_NAME.test(name) && field !== null && field !== undefined ? HIDDEN : clean(field, depth + 1),
        ]),
    );
  }

  return { text, fields: (fields: Record<string, unknown>) => record(fields, 0) };
}

/** Returns the stack without the message at its beginning, whatever the message's length and lines are. */
function frames({ stack = "", message }: Error): string {
  const at = stack.indexOf(message);
  const lines = stack
    .slice(at < 0 ? 0 : at + message.length)
    .split("\n")
    .map((line) => line.trim());
  return lines
    .filter((line) => line.startsWith("at "))
    .map(escapeText)
    .join(" | ");
}

const WIDTH = 5;
const MAX_SHOWN = 3;
/** Width of time and level. */
const INDENT = " ".repeat(15);
const COLOURS: Record<string, string> = { debug: "2", info: "2", warn: "33", error: "31" };

/**
 * Returns a JSON log line in a form for people: `12:00:01 WARN  page quarantined zoneId=101 entries=2`. Other text is
 * unchanged. Counts of zero and empty lists are left out, long lists are cut, and an error is one line; the JSON
 * holds them in full. Breaks at words if `columns` is smaller. Routine lines are dim, problems coloured.
 */
export function prettyLine(line: string, hasColours = false, columns = Number.POSITIVE_INFINITY): string {
  const { level, time, msg, ...fields } = readLine(line);
  if (typeof level !== "string" || typeof time !== "string") return line;
  const facts = Object.entries(fields)
    .filter(([, value]) => !isNothing(value))
    .map(([name, value]) => ` ${name}=${show(value)}`);
  const text = `${time.slice(11, 19)} ${level.toUpperCase().padEnd(WIDTH)} ${String(msg)}${facts.join("")}`;
  const colour = hasColours ? COLOURS[level] : undefined;
  const wrapped = wrapAtWords(text, columns);
  return colour === undefined ? `${wrapped}\n` : `\u001b[${colour}m${wrapped}\u001b[0m\n`;
}

/** Breaks at blanks only, so that a value can be copied whole. Further lines are indented to the event. */
function wrapAtWords(text: string, columns: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line.trim() !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = INDENT + word;
    } else line = lines.length === 0 && line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}

function isNothing(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  return value === 0;
}

/** Quotes a value only if it could be read as two fields. The log has escaped the text already. */
function show(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return value;
  if (isError(value)) return JSON.stringify(describe(value));
  if (!Array.isArray(value) || value.length <= MAX_SHOWN) return JSON.stringify(value);
  const shown = value.slice(0, MAX_SHOWN).map((item) => JSON.stringify(item));
  return `[${shown.join(",")},… ${value.length - MAX_SHOWN} more]`;
}

/** An error as the log writes it. */
interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: unknown;
}

function isError(value: unknown): value is LoggedError {
  return typeof value === "object" && value !== null && "type" in value && "message" in value;
}

/** Returns the error in one line, with the innermost place if it is known. */
function describe({ message, code, stack, cause }: LoggedError): string {
  const place = stack === undefined ? "" : ` ${stack.split(" | ")[0]}`;
  const why = isError(cause) ? `: ${describe(cause)}` : "";
  return `${message}${code === undefined ? "" : ` (${code})`}${place}${why}`;
}

function readLine(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return {};
  }
}
