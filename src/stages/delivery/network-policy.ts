import type { LookupFunction } from "node:net";

/** The addresses that a channel may connect to. */
export interface NetworkPolicy {
  /** Admits private, loopback, unique-local and carrier-grade-NAT addresses and plain http. Default false. */
  readonly allowPrivateNetworks?: boolean;
  /** Certificate authorities in PEM that are trusted instead of the public ones. */
  readonly ca?: string;
  /** A function like `dns.lookup`, which is the default. */
  readonly lookup?: LookupFunction;
}
