import { z } from "zod";

/** Private key types of a hostname's certificate: 0 is ECDSA, 1 is RSA. */
export const KEY_TYPES = { ecdsa: 0, rsa: 1 } as const;
const KeyType = z.literal(Object.values(KEY_TYPES), "must be 0 (ECDSA) or 1 (RSA)");

/** The public description has only Hostname, the official one requires both members. */
export const HostnameKeyTypeRequest = z.strictObject({ Hostname: z.string().min(1), KeyType });
export type HostnameKeyTypeRequest = z.infer<typeof HostnameKeyTypeRequest>;
