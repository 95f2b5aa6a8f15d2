import type { SessionTokens } from "#model/session-token.ts";
import type { Caller } from "#operations/caller.ts";

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
  /** The secrets of the request. Their session ends, and they are never used again. */
  readonly before: SessionTokens | null;
}

/**
 * Sessions of the console. Each lasts as long as its key, at most 12 hours without use, and at most seven days, with the
 * role admin 24 hours.
 */
export interface Sessions {
  /** Null where the secrets are unknown, or their session or key is over. */
  readonly find: (tokens: SessionTokens) => Promise<Session | null>;
  /** Records that a person used the session, so that its 12 hours begin again. */
  readonly noteUse: (session: Session) => void;
  readonly openByKey: (caller: Caller, session: NewSession) => Promise<SessionTokens>;
  /** Uses the one-time token up. Null where it is unknown, used or expired. */
  readonly openByLink: (token: string, session: NewSession) => Promise<SessionTokens | null>;
  readonly end: (session: Session, how: { readonly everywhere: boolean }) => Promise<void>;
}
