import { sourceKinds } from "#model/stored-sources.ts";

/**
 * The series of a zone that count sources: the largest number of different members behind one key. Counting distinct
 * things keeps one broken client, which is one address on one or two rules, however many events it causes, from
 * looking like an attack.
 */
export const SOURCE_KINDS = sourceKinds;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** The number of deviations above the usual from which a series fires. */
export const SOURCE_Z: Readonly<Record<SourceKind, number>> = {
  rules_per_ip: 2.5,
  ips_per_ja4: 2.75,
  ips_per_url: 3.5,
  ips_per_ua: 3.5,
  ips_per_asn: 3.5,
};
