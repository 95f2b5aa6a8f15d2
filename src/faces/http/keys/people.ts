import type { Secret } from "#lib/secret.ts";
import type { Caller } from "#operations/caller.ts";
import type { GrantBasis } from "#operations/keys/grant-person.ts";

export interface SignedPerson {
  readonly caller: Caller;
  readonly basis: GrantBasis;
  readonly endsAt: Date;
  /** The issuer's sign-out asks for it. */
  readonly idToken: Secret;
  /** Hash of the secret with which the person came back. It opens one session only. */
  readonly flowHash: Buffer;
}

/** The issuer at which people sign in. `begin` and `finish` throw a Refusal that says what to do. */
export interface People {
  /** Ends the button "Sign in with ..."; null if no issuer is configured. */
  readonly label: () => string | null;
  /** Returns the address at which the person signs in, and the secret that the browser keeps until then. */
  readonly begin: () => Promise<{ readonly url: string; readonly secret: Secret }>;
  /** Checks the query with which the issuer sent the person back. One of the browser's secrets must have begun it. */
  readonly finish: (secrets: readonly string[], answer: string) => Promise<SignedPerson>;
  /** Returns the address at which the person signs out at the issuer; null if there is none or it cannot be found. */
  readonly signOutUrl: (idToken: Secret) => Promise<string | null>;
}
