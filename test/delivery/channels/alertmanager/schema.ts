import { z } from "zod";
import { text } from "../../support/characters.ts";

const labelSet = z.record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), text(5_000));

/** `postableAlerts` of the API's OpenAPI document, and what the server checks of each. */
export const alertmanagerRequest = z
  .array(
    z
      .strictObject({
        labels: labelSet.refine((labels) => labels.alertname !== undefined, "no alertname"),
        annotations: labelSet,
        startsAt: z.iso.datetime(),
        endsAt: z.iso.datetime(),
        generatorURL: z.url().optional(),
      })
      .refine(({ startsAt, endsAt }) => Date.parse(startsAt) <= Date.parse(endsAt), "ends before it starts"),
  )
  .min(1);
