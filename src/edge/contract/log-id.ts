import { z } from "zod";

/**
 * The platform's identifier of an event, a lower-case UUID as far as seen. An event without one cannot be told from
 * its copies, so it does not read; a number is taken as its digits.
 */
export const LogId = z.union([z.string().min(1), z.int().transform(String)]);
