import { z } from "zod";
import { OptionalText } from "./text.ts";

/**
 * The status block inside (or instead of) a response; platform API spec 2.5. A successful answer may carry the block
 * with its defaults: statusCode 0, success false, both texts null.
 */
export const GenericRequestResponse = z.looseObject({
  statusCode: z
    .int()
    .nullish()
    .catch(0)
    .transform((value) => value ?? 0),
  success: z
    .boolean()
    .nullish()
    .catch(false)
    .transform((value) => value ?? false),
  message: OptionalText.catch(null),
  errorKey: OptionalText.catch(null),
});
export type GenericRequestResponse = z.infer<typeof GenericRequestResponse>;

/**
 * The block as a member of a page. Absent and null mean "nothing to report". A block of another type is refused,
 * because it may report a failure.
 */
export const StatusBlock = z
  .looseObject({
    statusCode: z
      .int()
      .nullish()
      .transform((value) => value ?? 0),
    success: z
      .boolean()
      .nullish()
      .transform((value) => value ?? false),
    message: OptionalText,
    errorKey: OptionalText,
  })
  .nullish()
  .transform((value) => value ?? null);
