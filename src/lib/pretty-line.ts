const WIDTH = 5;
const MAX_ITEMS = 3;
/** As wide as time and level. */
const INDENT = " ".repeat(15);
const COLOURS: Record<string, string> = { debug: "2", info: "2", warn: "33", error: "31" };

/**
 * A JSON log line for people: `12:00:01 WARN  page quarantined zoneId=101 entries=2`; other text is left as it is. Counts
 * of zero and empty lists are left out and long lists cut, and an error is a line: the JSON has them whole. Breaks at words where `columns` are fewer. Routine is dim, trouble coloured.
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

/** Breaks at blanks only, so that a value can be copied whole; further lines begin below the event. */
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

/** Text comes escaped from the log; only what could be taken for two fields needs quotes. */
function show(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=]+$/.test(value)) return value;
  if (isError(value)) return JSON.stringify(describe(value));
  if (!Array.isArray(value) || value.length <= MAX_ITEMS) return JSON.stringify(value);
  const shown = value.slice(0, MAX_ITEMS).map((item) => JSON.stringify(item));
  return `[${shown.join(",")},… ${value.length - MAX_ITEMS} more]`;
}

/** As the log writes errors. */
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

/** In one line, with the innermost place where one is known. */
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
