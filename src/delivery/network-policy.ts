import type { LookupFunction } from "node:net";

/** Where a channel may connect to. */
export interface NetworkPolicy {
  /** Admits private, loopback, unique-local and carrier-grade-NAT addresses and plain http. Default false. */
  readonly allowPrivateNetworks?: boolean;
  /** Trusted besides the public authorities, PEM. */
  readonly ca?: string;
  /** Like `dns.lookup`, which is the default. */
  readonly lookup?: LookupFunction;
}
