import type { Scope } from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import type { ErrorForm } from "../errors/error-form.ts";
import type { HeavyWork } from "../limits/concurrency-limit.ts";
import type { Session } from "./sessions.ts";

/**
 * The callers that may use a route. `zone` names the path parameter or query member that contains the zone's id. A key
 * for some zones is refused if that is another zone or missing. A route whose body names the zone, or that answers for
 * all of the caller's zones, omits `zone` and checks `caller.zoneIds` itself.
 */
export type Access =
  | "public"
  | {
      readonly scope: Scope;
      readonly zone?: string;
      /** Refuses a session: the person must enter the key again. */
      readonly withKey?: true;
    };

declare module "fastify" {
  interface FastifyContextConfig {
    access?: Access;
    /** The form of the platform's errors, on the platform's routes. Longwatch's own routes omit it. */
    errorForm?: ErrorForm;
    /** Limits how many requests of such routes one key may have in progress. */
    heavy?: HeavyWork;
    /** Marks routes that balancers and supervisors may request as often as they like. */
    isProbe?: true;
  }
  interface FastifyRequest {
    /** Null on public routes. */
    caller: Caller | null;
    /** Null on public routes, and if the request came with a key. */
    session: Session | null;
    /** Looks the caller up again, because an answer may outlast the key. Not set on public routes. */
    readCallerAgain: () => Promise<Caller | null>;
  }
}
