declare module "virtual:operations" {
  import type { OperationAddress } from "#model/operation-address.ts";
  /** The address of each operation by name. */
  export const ADDRESSES: Readonly<Record<string, OperationAddress>>;
}
