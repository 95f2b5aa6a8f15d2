import type { Scope } from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import type { ErrorForm } from "../errors/error-form.ts";
import type { HeavyWork } from "../limits/concurrency-limit.ts";
import type { Session } from "./sessions.ts";

/**
 * Who may use a route. `zone` names the path parameter or query member with the zone's id: a key for some zones is
 * refused where it names another one or none. A route that finds the zone in its body, or that answers for all of the
 * caller's zones, leaves it out and looks at `caller.zoneIds` itself.
 */
export type Access =
  | "public"
  | {
      readonly scope: Scope;
      readonly zone?: string;
      /** A session is refused: the person enters the key again. */
      readonly withKey?: true;
    };

declare module "fastify" {
  interface FastifyContextConfig {
    access?: Access;
    /** The form of the platform's errors on the platform's routes; left out on Longwatch's own routes. */
    errorForm?: ErrorForm;
    /** One key may have only so many requests of such routes in progress. */
    heavy?: HeavyWork;
    /** Asked by balancers and supervisors, as often as they like. */
    isProbe?: true;
  }
  interface FastifyRequest {
    /** Null on public routes. */
    caller: Caller | null;
    /** Null where the request came with a key, and on public routes. */
    session: Session | null;
    /** For answers that last: a revoked key or session gets no more of them. Not set on public routes. */
    readCallerAgain: () => Promise<Caller | null>;
  }
}
