declare module "virtual:operations" {
  import type { OperationAddress } from "#model/operation-address.ts";
  /** The address of each operation by name. */
  export const ADDRESSES: Readonly<Record<string, OperationAddress>>;
  /** The lists with a tab on the page of operations. */
  export const LISTS: readonly {
    readonly name: import("./ask.ts").OperationName;
    readonly title: string;
    readonly about: string;
    readonly scope: import("#model/kinds.ts").Scope;
    /** The members of an item. */
    readonly members: readonly string[];
  }[];
}
