import { z } from "zod";

/** The JSON of a refusal (RFC 9457), as the API's document shows it. */
export const Problem = z
  .object({
    type: z.string().describe("The type is stable. Programs may compare it."),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().optional(),
    mistakes: z
      .array(z.object({ field: z.string(), value: z.string().optional(), rule: z.string() }))
      .optional()
      .describe("All rules that the request breaks."),
    requestId: z.string().optional(),
  })
  .meta({ id: "Problem" });
