import type { Secret } from "../../lib/secret.ts";
import type { Caller } from "./caller.ts";

/** The holder of a session, and when the session ends without another request. */
export interface Session {
  readonly id: string;
  readonly expiresAt: Date;
  readonly caller: Caller;
}

export interface NewSession {
  readonly userAgent: string;
  /** For the audit trail. */
  readonly network: string;
  /** The cookie that came with the request: its session ends, and its token is never used again. */
  readonly before: string | null;
}

/** Sessions of the console; each lasts as long as its key, and at most 12 hours without a request. */
export interface Sessions {
  /** Null where the token is unknown, or its session or key is over. */
  readonly find: (token: string) => Promise<Session | null>;
  readonly openByKey: (caller: Caller, session: NewSession) => Promise<Secret>;
  /** Uses the one-time token up. Null where it is unknown, used or expired. */
  readonly openByLink: (token: string, session: NewSession) => Promise<Secret | null>;
  readonly end: (session: Session, how: { readonly everywhere: boolean }) => Promise<void>;
}
