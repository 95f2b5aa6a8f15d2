import { z } from "zod";

/** Private key types of a hostname's certificate: 0 is ECDSA, 1 is RSA. */
export const KEY_TYPES = { ecdsa: 0, rsa: 1 } as const;
const KeyType = z.union([z.literal(KEY_TYPES.ecdsa), z.literal(KEY_TYPES.rsa)]);

/** Both members are required, although the shorter public description has only Hostname. */
export const HostnameKeyTypeRequest = z.strictObject({ Hostname: z.string().min(1), KeyType });
export type HostnameKeyTypeRequest = z.infer<typeof HostnameKeyTypeRequest>;
