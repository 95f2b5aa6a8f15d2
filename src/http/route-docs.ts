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
}

declare module "fastify" {
  interface FastifyContextConfig {
    docs?: RouteDocs;
  }
  interface FastifySchema {
    tags?: readonly string[];
    summary?: string;
    description?: string;
  }
}
