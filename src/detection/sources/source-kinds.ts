/**
 * The series of a zone that count sources: the largest number of different members behind one key. `z` is the number
 * of deviations above the usual from which a series fires. Counting distinct things keeps one broken client, which is
 * one address on one or two rules, however many events it causes, from looking like an attack.
 */
export const SOURCE_SERIES = [
  { kind: "rules_per_ip", z: 2.5 },
  { kind: "ips_per_ja4", z: 3 },
  { kind: "ips_per_url", z: 4 },
  { kind: "ips_per_ua", z: 4 },
  { kind: "ips_per_asn", z: 4 },
] as const;

export type SourceKind = (typeof SOURCE_SERIES)[number]["kind"];

export const SOURCE_KINDS: readonly SourceKind[] = SOURCE_SERIES.map(({ kind }) => kind);
