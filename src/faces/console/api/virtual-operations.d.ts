declare module "virtual:operations" {
  import type { ApiRequest } from "./client.ts";
  /** Method and path of each operation by name, and the members of its input that are in the query. */
  export const ADDRESSES: Readonly<
    Record<
      string,
      {
        readonly method: NonNullable<ApiRequest["method"]>;
        readonly path: string;
        readonly query: readonly string[];
      }
    >
  >;
}
