import { escapeText, shortenText } from "./escape-text.ts";
import { isFailedQuery, messageOf } from "./message-of.ts";

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
export function createLogCleaner(secrets: () => readonly string[]) {
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
