import type { z } from "zod";

/** What the API's document says of a route that checks its input by other means than zod schemas of its own. */
export interface RouteDocs {
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly example?: unknown;
  readonly response?: z.ZodType;
  /** Default JSON. */
  readonly responseType?: string;
  /** By status and media type, what else is answered; left out: problem+json by the rules of the native API. */
  readonly refusals?: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>>;
}

declare module "fastify" {
  interface FastifyContextConfig {
    docs?: RouteDocs;
    /** Statuses with which the route refuses what its schemas let through. */
    refuses?: readonly number[];
  }
  interface FastifySchema {
    tags?: readonly string[];
    summary?: string;
    description?: string;
  }
}
