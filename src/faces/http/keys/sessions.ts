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
  /** Written into the audit trail. */
  readonly network: string;
  /** The secrets that came with the request. Their session ends, and they are never used again. */
  readonly before: SessionTokens | null;
}

/**
 * Sessions of the console. A session lasts as long as its key, at most 12 hours without use, and at most seven days; 24
 * hours for the role admin.
 */
export interface Sessions {
  /** Returns null if the secrets are unknown, or if their session or key has ended. */
  readonly find: (tokens: SessionTokens) => Promise<Session | null>;
  /** Records a use of the session, so that its 12 hours begin again. */
  readonly noteUse: (session: Session) => void;
  readonly openByKey: (caller: Caller, session: NewSession) => Promise<SessionTokens>;
  /** Consumes the one-time token. Returns null if the token is unknown, used or expired. */
  readonly openByLink: (token: string, session: NewSession) => Promise<SessionTokens | null>;
  readonly end: (session: Session, how: { readonly everywhere: boolean }) => Promise<void>;
}
