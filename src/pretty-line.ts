const WIDTH = 5;

/** A JSON log line for people: `12:00:01 WARN  page quarantined zoneId=101 entries=2`; other text is left as it is. */
export function prettyLine(line: string): string {
  const { level, time, msg, ...fields } = readLine(line);
  if (typeof level !== "string" || typeof time !== "string") return line;
  const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${show(value)}`);
  return `${time.slice(11, 19)} ${level.toUpperCase().padEnd(WIDTH)} ${String(msg)}${facts.join("")}\n`;
}

/** Text comes escaped from the log; only what could be taken for two fields needs quotes. */
function show(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

function readLine(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return {};
  }
}
