import type { UsualDimension } from "./kinds.ts";

/** A network, a JA4 fingerprint or a path template that is usual in a zone. */
export interface UsualValue {
  readonly dimension: UsualDimension;
  readonly value: string;
  /** Epoch ms. */
  readonly since: number;
}

/** A day (of an ASN) or an address that had a value, with the time of its first event in epoch ms. */
export interface FirstUse {
  readonly dimension: UsualDimension;
  /** Value of the dimension; for `path` a path. */
  readonly value: string;
  readonly user: string;
  readonly at: number;
}
