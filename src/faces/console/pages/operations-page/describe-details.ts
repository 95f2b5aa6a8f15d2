import { formatDuration } from "#lib/format.ts";
import { FIELD_NAMES, FIELDS } from "#model/fields.ts";
import { formatCount, wordField } from "../../style/words.ts";

/** One line of an audit entry's details: a label with a value, or with the lines of a nested value. */
export interface DetailLine {
  /** Empty for an item of a list. Untrusted text, as `text` is. */
  readonly label: string;
  readonly text: string;
  /** The value as a time, epoch ms; null if it is something else. */
  readonly atMs: number | null;
  readonly lines: readonly DetailLine[];
}

/** Deeper values are one JSON text: no action writes them. */
const MAX_DEPTH = 5;
/** Lines of a nested value, and items of a list. */
const MAX_SHOWN = 50;
const MAX_CHARS = 2_000;

const LABELS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...Object.fromEntries(FIELD_NAMES.map((name) => [FIELDS[name], wordField(name)])),
    zoneId: "zone",
    zoneIds: "zones",
    isMasked: "addresses masked",
    isDelivered: "delivered",
    expiresAt: "expires",
    startsAt: "starts",
    keyId: "pseudonym key",
    spikeIds: "spikes",
    notWritten: "equal ones before, without an entry",
    requestId: "request",
    ids: "event by event",
    held: "held back",
    family: "IP version",
    includeMasked: "masked addresses too",
    hasPseudonymKey: "pseudonym key set",
    areMetricsPublic: "metrics public",
    allowsPrivateWebhooks: "private webhooks allowed",
    spikeZ: "z, score of a spike",
    alerting: "hash of alerting",
    rawDays: "records",
    ipDays: "addresses",
    eventDays: "events",
    rollUpDays: "roll-ups",
  }),
);
/** The names that are read first, in this order. Postgres orders the members of an object by the length of a name. */
const FIRST: readonly string[] = [
  ..."name role kind pattern platform zoneId zones zoneIds zone from to startsAt expiresAt until".split(" "),
  ..."before after mark events records".split(" "),
];
/** The texts that a person typed. */
const LAST: readonly string[] = ["note", "reason"];
/** Meaning of null where it is not "unknown". */
const NULLS: ReadonlyMap<string, string> = new Map([
  ["zoneId", "all"],
  ["zoneIds", "all"],
  ["expiresAt", "never"],
  ["until", "no end"],
]);
const ZONES: ReadonlySet<string> = new Set(["zone", "zones", "zoneId", "zoneIds"]);
const UNIT = /(?<=[a-z])(?:Ms|Days)$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/;

type ZoneName = (zoneId: number) => string | null;

/** Returns the details of an audit entry as lines for a person. `zoneName` returns null for a zone without a name. */
export function describeDetails(details: unknown, zoneName: ZoneName): readonly DetailLine[] {
  return isNested(details) && !Array.isArray(details) ? describeMembers(details, zoneName, 1) : [];
}

function describeMembers(value: object, zoneName: ZoneName, depth: number): readonly DetailLine[] {
  const members = Object.entries(value).sort(([one], [other]) => rankOf(one) - rankOf(other));
  const all = members.flatMap(([name, one]) => describeMember(name, one, zoneName, depth));
  // Nested values come last, so that the short ones can follow each other.
  const lines = all.toSorted((one, other) => Number(one.lines.length > 0) - Number(other.lines.length > 0));
  return shorten(lines, (label) => textLine(label, ""));
}

function rankOf(name: string): number {
  if (FIRST.includes(name)) return FIRST.indexOf(name);
  return FIRST.length + 1 + LAST.indexOf(name);
}

function describeMember(name: string, value: unknown, zoneName: ZoneName, depth: number): DetailLine[] {
  const label = labelOf(name, value);
  if (value === null || value === undefined) {
    const meaning = NULLS.get(name);
    return meaning === undefined ? [] : [textLine(label, meaning)];
  }
  if (typeof value === "string" && TIME.test(value) && !Number.isNaN(Date.parse(value)))
    return [{ ...textLine(label, value), atMs: Date.parse(value) }];
  if (!isNested(value)) return [textLine(label, wordLeaf(name, value, zoneName))];
  const items = Array.isArray(value) ? (value as readonly unknown[]) : null;
  if (items?.some(isNested) === false) {
    const words = shorten(
      items.map((item) => wordLeaf(name, item, zoneName)),
      (rest) => rest,
    );
    return [textLine(label, words.join(", ") || "none")];
  }
  if (depth >= MAX_DEPTH) return [textLine(label, JSON.stringify(value))];
  const lines =
    items === null
      ? describeMembers(value, zoneName, depth + 1)
      : shorten(
          items.map((item) => describeItem(item, zoneName, depth + 1)),
          (rest) => textLine("", rest),
        );
  return [lines.length === 0 ? textLine(label, "none") : { ...textLine(label, ""), lines }];
}

/** Returns one line if the item has no nested value: `zone 101, events 5`. */
function describeItem(item: unknown, zoneName: ZoneName, depth: number): DetailLine {
  if (!isNested(item)) return textLine("", wordLeaf("", item, zoneName));
  if (depth >= MAX_DEPTH) return textLine("", JSON.stringify(item));
  const lines = describeMembers(item, zoneName, depth);
  if (lines.some((one) => one.lines.length > 0)) return { ...textLine("", ""), lines };
  return textLine("", lines.map(({ label, text }) => `${label} ${text}`.trim()).join(", ") || "none");
}

function textLine(label: string, text: string): DetailLine {
  const shown = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text;
  return { label, text: shown, atMs: null, lines: [] };
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Keeps the first items. `more` makes an item of the words that say how many were left out. */
function shorten<Item>(items: readonly Item[], more: (words: string) => Item): readonly Item[] {
  const rest = items.length - MAX_SHOWN;
  return rest > 0 ? [...items.slice(0, MAX_SHOWN), more(`and ${formatCount(rest)} more`)] : items;
}

/** `keptFor` as `kept for`, `pollEveryMs` as `poll every`: the unit is in the value. */
function labelOf(name: string, value: unknown): string {
  const known = LABELS.get(name);
  if (known !== undefined) return known;
  const bare = typeof value === "number" ? name.replace(UNIT, "") : name;
  return bare.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

function wordLeaf(name: string, value: unknown, zoneName: ZoneName): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") {
    const text = String(value);
    return name === "filteredBy" ? (LABELS.get(text) ?? text) : text;
  }
  if (ZONES.has(name)) {
    const title = zoneName(value);
    return title === null ? String(value) : `${title} (${value})`;
  }
  if (name.endsWith("Ms")) return formatDuration(value);
  if (name.endsWith("Days")) return `${value} days`;
  return String(value);
}
