import { z } from "zod";

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
