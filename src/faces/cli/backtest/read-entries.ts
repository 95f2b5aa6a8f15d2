import { readEventTime } from "#adapters/edge/contract/values.ts";
import { isObject, parseJson } from "#lib/json.ts";
import { cleanText, escapeText, MAX_TEXT_CHARS } from "#lib/text.ts";
import { type ActionStates, classifyAction } from "#model/action-class.ts";
import { readRequest } from "#model/request-facts.ts";
import { toListEvent } from "#stages/ingest/to-list-event.ts";
import type { TakeEvent } from "./read-events.ts";

const MAX_LINE_BYTES = 1_048_576;
const MAX_MISTAKES = 10;
const MAX_ZONE_CHARS = 200;
const FIELDS = ["ruleId", "ip", "ja4", "ua", "url", "asn", "action"] as const;
const RULES = {
  zone: `a number, or a name of 1 to ${MAX_ZONE_CHARS} characters`,
  logId: "a text that is not empty",
  timestamp: "milliseconds since the epoch",
  labels: "an object of texts",
  log: "a text with the record's JSON, or the record",
  fields: `an object of texts, such as ${FIELDS.join(", ")}`,
};

/**
 * Reads entries of the date-paged list, one JSON object per line with its `zone`, in chunks. Members of `fields`, as a search's row
 * has them, replace what the entry says. Returns the mistakes, each with line, field, value and rule. Stops after ten.
 */
export async function readEntries(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const mistakes: string[] = [];
  let line = 0;
  for await (const text of splitLines(chunks)) {
    line += 1;
    const mistake =
      text === null ? `a line has at most ${MAX_LINE_BYTES} bytes` : takeLine(text, actions, take);
    if (mistake !== undefined) mistakes.push(`line ${line}${mistake.startsWith(",") ? "" : ": "}${mistake}`);
    if (text === null || mistakes.length >= MAX_MISTAKES) break;
  }
  return mistakes;
}

function takeLine(text: Buffer, { classify }: ActionStates, take: TakeEvent): string | undefined {
  const entry = parseJson(text.toString());
  const shown = (value: unknown) =>
    `"${escapeText((typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, 80))}"`;
  if (!isObject(entry))
    return text.toString().trim() === ""
      ? undefined
      : `${shown(text.toString("utf8", 0, 400))} must be a JSON object`;
  const wrong = (field: keyof typeof RULES, rule = RULES[field]) =>
    `, field ${field}: ${shown(entry[field])} must be ${rule}`;
  const { zone, timestamp, log = null, fields = {} } = entry;
  const name = Number.isSafeInteger(zone) ? String(zone) : zone;
  if (typeof name !== "string" || name === "" || name.length > MAX_ZONE_CHARS) return wrong("zone");
  if (!isObject(fields) || !FIELDS.every((field) => fields[field] == null || isText(fields[field])))
    return wrong("fields");
  if (log !== null && typeof log !== "string" && !isObject(log)) return wrong("log");
  const event = toListEvent(entry);
  if (event === null) return wrong(wrongField(entry));
  const of = (field: (typeof FIELDS)[number]) => {
    const own = fields[field];
    return cleanText(isText(own) && own !== "" ? String(own) : (event[field] ?? ""), MAX_TEXT_CHARS);
  };
  const url = of("url");
  const after = take(name, Math.floor(event.occurredAt / 1_000), {
    ruleId: of("ruleId"),
    ip: of("ip"),
    asn: of("asn"),
    ja4: of("ja4"),
    ua: of("ua"),
    url,
    action: classifyAction(of("action")),
    fate: classify(of("action")),
    at: event.occurredAt,
    logId: event.logId,
    ...(log === null ? {} : { request: readRequest(text, { url, ua: of("ua"), ruleId: of("ruleId") }, "") }),
  });
  return after === undefined
    ? undefined
    : wrong(
        "timestamp",
        `at least ${after * 1_000}, the second of the zone's previous line (${shown(timestamp)})`,
      );
}

/** Returns the field because of which the entry is none. */
function wrongField({ logId, timestamp }: Record<string, unknown>): "logId" | "timestamp" | "labels" {
  if (!Number.isSafeInteger(logId) && (typeof logId !== "string" || logId === "")) return "logId";
  return readEventTime(timestamp) === null ? "timestamp" : "labels";
}

function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** Yields the lines without their ends, and null in place of one that is too long. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | null, void, undefined> {
  let rest: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      yield bytes + end - from > MAX_LINE_BYTES ? null : Buffer.concat([...rest, chunk.subarray(from, end)]);
      [rest, bytes, from] = [[], 0, end + 1];
    }
    rest.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > MAX_LINE_BYTES) yield null;
  }
  if (bytes > 0) yield Buffer.concat(rest);
}
