/** Forms in which the platform may send an entry although its contract says otherwise. `unreadable` is no event in any form. */
export const SHAPES = [
  "unreadable",
  "fraction",
  "seconds",
  "other-log",
  "lower-headers",
  "match-list",
] as const;
export type Shape = (typeof SHAPES)[number];

interface Entry {
  readonly logId: string;
  readonly timestamp: number;
  readonly log: unknown;
}

/** Returns an entry of the list, or a row of the search, in another form. `other-log` swaps text and object. */
export function toOddEntry(entry: Entry, shape: Shape): object {
  const { logId, timestamp, log } = entry;
  if (shape === "unreadable") return { ...entry, logId: { "\u001b[31m<b>https://evil.example": logId } };
  if (shape === "fraction") return { ...entry, timestamp: timestamp + 0.25 };
  if (shape === "seconds") return { ...entry, timestamp: timestamp / 1_000 };
  const isText = typeof log === "string";
  const record = (isText ? JSON.parse(log) : log) as {
    Headers: Record<string, unknown>[];
    TriggerMatch: unknown;
  };
  const changed =
    shape === "lower-headers"
      ? { ...record, Headers: record.Headers.map(({ Name, Value }) => ({ name: Name, value: Value })) }
      : shape === "match-list"
        ? { ...record, TriggerMatch: [record.TriggerMatch] }
        : record;
  return { ...entry, log: isText === (shape === "other-log") ? changed : JSON.stringify(changed) };
}
