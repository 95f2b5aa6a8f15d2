import { z } from "zod";

/** Replaces a value that is no text by an empty text, so that the indexes of the other values stay the same. */
const text = z.string().catch("");
const texts = z.array(text).catch([]);
const object = z.record(z.string(), z.unknown());

export interface LooseRoute {
  readonly channels: readonly string[];
  readonly matchers?: unknown;
  readonly continue?: unknown;
  readonly routes: readonly LooseRoute[];
}
const NO_ROUTE: LooseRoute = { channels: [], routes: [] };
const route: z.ZodType<LooseRoute> = z
  .object({
    channels: texts,
    matchers: z.unknown().optional(),
    continue: z.unknown().optional(),
    get routes() {
      return z.array(route).catch([]);
    },
  })
  .catch(NO_ROUTE as never);

/** The parts of a configuration file that refer to each other. Never fails, even if the file has mistakes elsewhere. */
export const looseFile = z
  .object({
    channels: object.catch({}),
    route,
    quiet_hours: z
      .array(z.object({ channels: texts, from: text, to: text }).catch({ channels: [], from: "", to: "" }))
      .catch([]),
    digest: z.object({ channels: texts }).catch({ channels: [] }),
    links: z
      .array(
        z
          .object({ title: text, matchers: object.default({}).catch({ wrong: true }) })
          .catch({ title: "", matchers: { wrong: true } }),
      )
      .catch([]),
  })
  .catch({ channels: {}, route: NO_ROUTE, quiet_hours: [], digest: { channels: [] }, links: [] });
