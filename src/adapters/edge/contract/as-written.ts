import { z } from "zod";

/** Members whose inner shape the platform's API does not show (spec 2.14). */
const OPAQUE: ReadonlySet<PropertyKey> = new Set(["protocols", "nodeSelectors", "response"]);

/**
 * Returns whether an issue breaks what the platform's API shows: the type of a member. Which members are required, known,
 * nullable or bounded is not shown, so the platform decides about those.
 */
function breaksType({ code, input, path }: z.core.$ZodIssue): boolean {
  const isInside = path.slice(0, -1).some((part) => OPAQUE.has(part));
  return code === "invalid_type" && input !== undefined && input !== null && !isInside;
}

/** The issues of a body: those that stop it, and those that are only worth a note. */
export function sortIssues(schema: z.ZodType, body: unknown) {
  const issues = schema.safeParse(body, { reportInput: true }).error?.issues ?? [];
  return { wrong: issues.filter(breaksType), unshown: issues.filter((issue) => !breaksType(issue)) };
}

/** Returns the schema of a body that is sent as it was written, as long as its members have the types that are shown. */
export function asWritten<Schema extends z.ZodType>(schema: Schema) {
  return z.custom<z.output<Schema>>().superRefine((body, context) => {
    for (const { path, message } of sortIssues(schema, body).wrong)
      context.addIssue({ code: "custom", path: [...path], message });
  });
}
