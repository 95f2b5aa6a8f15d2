import { z } from "zod";

const MAX_INT32 = 2_147_483_647;

/** A .NET int32. The platform refuses a body with any value outside its range. */
export const Int32 = z
  .int()
  .min(-MAX_INT32 - 1)
  .max(MAX_INT32);

/** An int32 identifier: shield zones and pull zones. */
export const Int32Id = z.int().min(1).max(MAX_INT32);

/** A count in a response; null and absent read as 0. */
export const Count = z
  .int()
  .nullish()
  .transform((value) => value ?? 0);

/** A .NET int64 in a response; a text of its digits if a double cannot hold it. */
export const Int64 = z.union([z.int(), z.string().regex(/^-?\d+$/)]);
