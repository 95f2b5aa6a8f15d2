import type { FastifySchemaCompiler } from "fastify";
import type { z } from "zod";
import { findMistakes } from "#operations/mistakes.ts";
import { Refusal } from "#operations/refusal.ts";

/** Checks a part of the request by its zod schema. One refusal lists all mistakes. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (data: unknown) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    const mistakes = findMistakes(parsed.error, data, { isText: httpPart !== "body" });
    return { error: new Refusal(400, { slug: "invalid-request", mistakes }) };
  };
