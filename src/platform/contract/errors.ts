/** The bodies in which the platform reports a failure; platform API spec 2.5 and 2.13. */
import { z } from "zod";
import { OptionalText } from "./values.ts";

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

const text = z.string().nullish().catch(null);
const status = z.int().nullish().catch(null);

/**
 * Error of the key, pull zone and DNS zone operations; platform API spec 2.13. Members may be missing; a bad key
 * sends only Message.
 */
export const LegacyError = z.looseObject({ ErrorKey: text, Field: text, Message: text });
export type LegacyError = z.infer<typeof LegacyError>;

/**
 * Error of Shield search, export and list, and the second variant of the container operations. More members are
 * allowed.
 */
export const ProblemDetails = z.looseObject({
  type: text,
  title: text,
  status,
  detail: text,
  instance: text,
});
export type ProblemDetails = z.infer<typeof ProblemDetails>;

/** Error of the container operations. `id` is the application's id, `instance` an internal path of the platform. */
export const ExtendedProblem = z.looseObject({
  title: text,
  status,
  detail: text,
  instance: text,
  errors: z
    .array(z.looseObject({ message: text, field: text }))
    .nullish()
    .catch(null),
  id: text,
});
export type ExtendedProblem = z.infer<typeof ExtendedProblem>;

/** Error of the AI recommendation and metrics. */
export const MinimalError = z.looseObject({ statusCode: z.int() });
export type MinimalError = z.infer<typeof MinimalError>;
