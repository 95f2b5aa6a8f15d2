import type { LookupFunction } from "node:net";

/** The addresses that a channel may connect to. */
export interface NetworkPolicy {
  /** Admits private, loopback, unique-local and carrier-grade-NAT addresses and plain http. Default false. */
  readonly allowPrivateNetworks?: boolean;
  /** Authorities that are trusted besides the public ones, PEM. */
  readonly ca?: string;
  /** Like `dns.lookup`, which is the default. */
  readonly lookup?: LookupFunction;
}
