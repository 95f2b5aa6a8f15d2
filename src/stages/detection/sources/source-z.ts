import type { SourceKind } from "#model/kinds.ts";

/** The number of deviations above the usual from which a series fires. */
export const SOURCE_Z: Readonly<Record<SourceKind, number>> = {
  rules_per_ip: 2.5,
  ips_per_ja4: 2.75,
  ips_per_url: 3.5,
  ips_per_ua: 3.5,
  ips_per_asn: 3.5,
};
