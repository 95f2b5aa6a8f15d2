/** The bodies of the account's operations: API keys, hostnames and DNS zones. */
import { z } from "zod";
import { Count, Int64, listOf, Text } from "./values.ts";

/** `Key` is the credential itself. */
const ApiKeyItem = z.looseObject({
  Id: Int64,
  Key: Text,
  Roles: listOf(z.string()),
});

/**
 * One page of account keys; platform API spec 2.1. Some lists of that API answer with a bare array, which is read as
 * the only page. `Items` and `HasMoreItems` are required, so that names in another case do not read as an account
 * without keys.
 */
export const ApiKeyList = z.preprocess(
  (value) =>
    Array.isArray(value)
      ? { Items: value, CurrentPage: 1, TotalItems: value.length, HasMoreItems: false }
      : value,
  z.looseObject({
    Items: z.array(ApiKeyItem),
    CurrentPage: Count,
    TotalItems: Count,
    HasMoreItems: z.boolean(),
  }),
);
export type ApiKeyList = z.infer<typeof ApiKeyList>;

/** The query of the list. Both members are always sent, because without them the answer may change its shape. */
export const ApiKeyListQuery = z.strictObject({
  page: z.int().min(1).max(2_147_483_647).default(1),
  perPage: z.int().min(5).max(1_000).default(1_000),
});
export type ApiKeyListQuery = z.input<typeof ApiKeyListQuery>;

/** Private key types of a hostname's certificate: 0 is ECDSA, 1 is RSA. */
export const KEY_TYPES = { ecdsa: 0, rsa: 1 } as const;
const KeyType = z.literal(Object.values(KEY_TYPES), "must be 0 (ECDSA) or 1 (RSA)");

/** The public description has only Hostname, the official one requires both members. */
export const HostnameKeyTypeRequest = z.strictObject({ Hostname: z.string().min(1), KeyType });
export type HostnameKeyTypeRequest = z.infer<typeof HostnameKeyTypeRequest>;

export const DnsAvailabilityRequest = z.strictObject({ Name: z.string().min(1) });
export type DnsAvailabilityRequest = z.infer<typeof DnsAvailabilityRequest>;

export const DnsAvailabilityResponse = z.looseObject({
  /** Null if the platform answered without a body, which its document does not show. */
  Available: z
    .boolean()
    .nullish()
    .transform((value) => value ?? null),
});
export type DnsAvailabilityResponse = z.infer<typeof DnsAvailabilityResponse>;
