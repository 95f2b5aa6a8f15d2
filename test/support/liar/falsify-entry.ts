import type { Dimension } from "./lie.ts";
import type { ListEntry, SearchRow } from "./true-platform.ts";

type Fields = Readonly<Partial<Record<Dimension, string>>>;
type Json = Readonly<Record<string, unknown>>;

/** The words of `labels.status` by action. */
const STATUS: Readonly<Record<string, string>> = { block: "Blocked", log: "Logged", challenge: "Challenged" };

/** Returns a search row or list entry with false values wherever the dimension stands, and the dimensions concerned. */
export function falsifyEntry<E extends object>(
  entry: E,
  fields: Fields,
): { readonly entry: E; readonly falseFields: readonly Dimension[] } {
  const names = Object.keys(fields) as Dimension[];
  if (names.length === 0) return { entry, falseFields: [] };
  if ("fields" in entry) {
    const row = entry as unknown as SearchRow;
    const falseFields = names.filter((name) => row.fields[name] !== fields[name]);
    const made = { ...row, log: falsifyLog(row.log as Json, fields), fields: { ...row.fields, ...fields } };
    return { entry: made as unknown as E, falseFields };
  }
  // The list shows neither the feature nor the JA4.
  const falseFields = names.filter((name) => name !== "feature" && name !== "ja4");
  return { entry: falsifyListEntry(entry as unknown as ListEntry, fields) as unknown as E, falseFields };
}

function falsifyListEntry(entry: ListEntry, { ...fields }: Fields): ListEntry {
  const { action, asn, country, ruleId } = fields;
  const labels = {
    ...(entry["labels"] as Json),
    ...(asn === undefined ? {} : { asn }),
    ...(country === undefined ? {} : { country }),
    ...(ruleId === undefined ? {} : { ruleId }),
    ...(action === undefined ? {} : { status: STATUS[action] ?? action }),
  };
  const log = JSON.stringify(falsifyLog(JSON.parse(String(entry["log"])) as Json, fields));
  return { ...entry, log, labels };
}

function falsifyLog(log: Json, { ip, ua, url }: Fields): Json {
  const headers =
    (log["Headers"] as readonly { readonly Name: string; readonly Value: string }[] | null) ?? [];
  return {
    ...log,
    ...(url === undefined ? {} : { Url: url }),
    // The record has the address without its last octet, like the platform's.
    ...(ip === undefined ? {} : { RemoteIp: ip.includes(":") ? ip : ip.replace(/\d+$/, "*") }),
    ...(ua === undefined
      ? {}
      : { Headers: headers.map((one) => (one.Name === "User-Agent" ? { ...one, Value: ua } : one)) }),
  };
}
