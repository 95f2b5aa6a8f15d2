import type { Secret } from "#lib/secret.ts";
import type { SessionTokens } from "#model/access-key.ts";
import type { Caller } from "#operations/caller.ts";
import type { SignedPerson } from "./people.ts";

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
  readonly before: readonly SessionTokens[];
}

/**
 * Sessions of the console. A session lasts as long as its key or the issuer's ID token, at most 12 hours without use, and at most seven days; 24
 * hours for the role admin.
 */
export interface Sessions {
  /** Returns null if all the secrets are unknown, or if their session or key has ended. */
  readonly find: (tokens: readonly SessionTokens[]) => Promise<Session | null>;
  /** Records a use of the session, so that its 12 hours begin again. */
  readonly noteUse: (session: Session) => void;
  readonly openByKey: (caller: Caller, session: NewSession) => Promise<SessionTokens>;
  /** Consumes the one-time token. Returns null if the token is unknown, used or expired. */
  readonly openByLink: (token: string, session: NewSession) => Promise<SessionTokens | null>;
  /** Returns null if the same secret opened a session before. */
  readonly openByIssuer: (signed: SignedPerson, session: NewSession) => Promise<SessionTokens | null>;
  /** Returns the issuer's token of the session, with which the person signs out there too; null if there is none. */
  readonly end: (session: Session, how: { readonly everywhere: boolean }) => Promise<Secret | null>;
}
