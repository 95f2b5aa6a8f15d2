const WIDTH = 5;
const MAX_ITEMS = 3;
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
  if (!Array.isArray(value) || value.length <= MAX_ITEMS) return JSON.stringify(value);
  const shown = value.slice(0, MAX_ITEMS).map((item) => JSON.stringify(item));
  return `[${shown.join(",")},… ${value.length - MAX_ITEMS} more]`;
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
