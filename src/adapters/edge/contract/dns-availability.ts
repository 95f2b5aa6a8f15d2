import { z } from "zod";

export const DnsAvailabilityRequest = z.strictObject({ Name: z.string().min(1) });
export type DnsAvailabilityRequest = z.infer<typeof DnsAvailabilityRequest>;

export const DnsAvailabilityResponse = z.looseObject({ Available: z.boolean() });
export type DnsAvailabilityResponse = z.infer<typeof DnsAvailabilityResponse>;
