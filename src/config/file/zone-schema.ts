import { z } from "zod";

const ZONE_NAME_RULE = "must be text of 1 to 40 printable characters that is no number";
export const zoneName = z
  .string(ZONE_NAME_RULE)
  .regex(/^(?!\d+$)[^\p{C}\p{Z}]+(?: [^\p{C}\p{Z}]+)*$/u, ZONE_NAME_RULE)
  .max(40, ZONE_NAME_RULE);
export const zones = z
  .array(z.union([z.int().positive(), zoneName], "must be a zone's number, or its name in zones"))
  .min(1);
