import { z } from "zod";

/**
 * The platform's identifier of an event, a lower-case UUID in all known cases. An event without an identifier is
 * refused, because it cannot be distinguished from its copies. A number is read as its digits.
 */
export const LogId = z.union([z.string().min(1), z.int().transform(String)]);
