import { z } from "zod";

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
