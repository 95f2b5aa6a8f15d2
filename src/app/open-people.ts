/** Signs people in at their issuer, and says why that fails. */
import * as client from "openid-client";
import { AuthorizationResponseError, ResponseBodyError } from "openid-client";
import type { SignIn } from "#config/file/sign-in-entry.ts";
import { createGuardedFetch } from "#delivery/receivers/endpoint.ts";
import type { People } from "#faces/http/keys/sessions.ts";
import { type Clock, systemClock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import { explainTlsFailure, TlsFailureError } from "#lib/http.ts";
import { createSecret } from "#lib/secret.ts";
import { isBlank } from "#lib/text.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { createFlow, FLOW_LASTS_MS, readFlow } from "#model/access-key.ts";
import { Refusal } from "#operations/refusal.ts";
import { grantPerson, joinClaims, toGrantBasis } from "#people/keys/grant-person.ts";

const TIMEOUT_SECONDS = 10;
const MOST_SESSION_MS = 7 * DAY_MS;
/** The longest by the standard. */
const MAX_SUB_CHARS = 255;
/** The library tolerates as much in other times. */
const TOLERATED_MS = 30_000;

interface PeopleParts {
  /** The settings as they are now: a reload may change them. */
  readonly settings: () => SignIn | null;
  /** Null: nobody can come back from an issuer. */
  readonly publicUrl: string | null;
  readonly clock?: Clock;
}

/** Returns the sign-in of people at the configured issuer. The first sign-in asks it first, so it may be down at the start. */
export function openPeople({ settings, publicUrl, clock = systemClock }: PeopleParts): People {
  const redirectUri = `${publicUrl}/sign-in`;
  let found: { from: SignIn; at: number; config: Promise<client.Configuration> } | null = null;

  async function ask<T>(work: (config: client.Configuration, from: SignIn) => T | Promise<T>): Promise<T> {
    const from = settings();
    if (from === null || publicUrl === null)
      throw new Refusal(404, { detail: "No issuer is configured here. Sign in with a key." });
    try {
      // The library finds changed keys at once; a changed endpoint is found after an hour.
      if (found?.from !== from || clock() - found.at >= HOUR_MS)
        found = { from, at: clock(), config: discover(from, clock) };
      return await work(await found.config.catch((thrown) => ((found = null), Promise.reject(thrown))), from);
    } catch (thrown) {
      throw explainIssuerFailure(thrown, from.issuer);
    }
  }

  return {
    label: () => (publicUrl === null ? null : (settings()?.label ?? null)),
    begin: () =>
      ask(async (config, { scopes }) => {
        const { secret, state, nonce, verifier } = createFlow(clock());
        const url = client.buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          scope: scopes.join(" "),
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
          state,
          nonce,
        });
        return { url: url.href, secret };
      }),
    finish: (secrets, answer) =>
      ask(async (config, from) => {
        const flows = secrets.flatMap((secret) => readFlow(secret, clock()) ?? []);
        const state = new URLSearchParams(answer).get("state");
        const flow = flows.find((one) => one.state === state) ?? flows[0];
        if (flow === undefined)
          throw new Refusal(401, {
            slug: "sign-in-over",
            detail: `This browser has not started this sign-in at ${publicUrl}, or it took longer than ten minutes. Open ${publicUrl} and sign in again.`,
          });
        const tokens = await client.authorizationCodeGrant(config, new URL(`${redirectUri}?${answer}`), {
          expectedState: flow.state,
          expectedNonce: flow.nonce,
          pkceCodeVerifier: flow.verifier,
        });
        const { id_token: idToken = "", access_token: accessToken } = tokens;
        const own = tokens.claims() as client.IDToken;
        checkClaims(own, from.clientId, clock());
        // Some issuers have groups and names only there.
        const hasMore = config.serverMetadata().userinfo_endpoint !== undefined;
        const more = hasMore ? await client.fetchUserInfo(config, accessToken, own.sub) : {};
        const claims = joinClaims(own, more);
        const caller = grantPerson(claims, from);
        if ("refusal" in caller) throw new Refusal(403, { slug: "no-role", detail: caller.refusal });
        // No session lasts longer, and the issuer may name a time that is no date.
        const endsAt = new Date(Math.min(own.exp * 1_000, clock() + MOST_SESSION_MS));
        const basis = toGrantBasis(claims, from);
        return { caller, basis, endsAt, idToken: createSecret(idToken), flowHash: flow.hash };
      }),
    // The session here has ended already. That must not fail with the issuer.
    signOutUrl: (idToken) =>
      ask((config) => {
        const about = { id_token_hint: idToken.reveal(), post_logout_redirect_uri: redirectUri };
        const hasEnd = config.serverMetadata().end_session_endpoint !== undefined;
        return hasEnd ? client.buildEndSessionUrl(config, about).href : null;
      }).catch(() => null),
  };
}

/** Checks what the library leaves to its caller. */
function checkClaims({ sub, azp, iat }: client.IDToken, clientId: string, nowMs: number): void {
  const refuse = (code: string) => Object.assign(new Error("the ID token is refused"), { code });
  // Halves of surrogate pairs would be stored as one character, so two people would be one.
  const isPerson = !isBlank(sub) && sub.length <= MAX_SUB_CHARS && sub.isWellFormed() && !sub.includes("\0");
  if (!isPerson || (azp !== undefined && azp !== clientId)) throw refuse("ID_TOKEN_UNFIT");
  const ageMs = nowMs - iat * 1_000;
  if (ageMs < -TOLERATED_MS || ageMs > FLOW_LASTS_MS + TOLERATED_MS)
    throw refuse("OAUTH_JWT_TIMESTAMP_CHECK_FAILED");
}

/** Reads the discovery document. The network is guarded as that of channels. */
async function discover(from: SignIn, clock: Clock): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret, allowPrivateNetworks } = from;
  const url = new URL(issuer);
  // The library reads the machine's clock.
  const metadata = { [client.clockSkew]: Math.round((clock() - systemClock()) / 1_000) };
  const config = await client.discovery(url, clientId, metadata, authenticate(clientSecret), {
    [client.customFetch]: createGuardedFetch({ allowPrivateNetworks }),
    timeout: TIMEOUT_SECONDS,
    execute: allowPrivateNetworks ? [client.allowInsecureRequests] : [],
  });
  // Without this, the library takes the token as it is, because TLS brought it. Plain HTTP is allowed in private networks.
  client.enableNonRepudiationChecks(config);
  // The library admits every tenant of some issuers. Another tenant's administrator could then choose the claims.
  if (URL.parse(config.serverMetadata().issuer)?.href === url.href) return config;
  throw Object.assign(new Error("another issuer"), { code: "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED" });
}

/** Sends the secret as the issuer wants it. Without a word about it, that is the header. Without a secret there is PKCE. */
function authenticate(secret: SignIn["clientSecret"]): client.ClientAuth {
  if (secret === null) return client.None();
  return (server, ...request) => {
    const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server;
    const isBasic = methods.includes("client_secret_basic");
    (isBasic ? client.ClientSecretBasic : client.ClientSecretPost)(secret.reveal())(server, ...request);
  };
}

const NOT_OURS = "gave an answer that does not belong to this sign-in. Sign in again, in one tab.";
/** Meaning of a code of the library, of its cause or of the issuer. The first that an error has counts. */
const MEANINGS = {
  ID_TOKEN_NOT_SIGNED:
    "gave an ID token that none of its keys has signed with an algorithm that it names. Correct jwks_uri and the client's signing algorithm (RS256) at the issuer; HS256 and none are refused. If both are right, somebody between this machine and the issuer changes answers.",
  ID_TOKEN_UNFIT:
    "gave an ID token that is not for this client and one person: azp must be sign_in.client_id, and sub must be visible text of 1 to 255 characters without NUL or halves of surrogate pairs. Correct the client at the issuer.",
  invalid_grant: "does not accept the code of this sign-in any more. Sign in again.",
  OAUTH_INVALID_RESPONSE: NOT_OURS,
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: NOT_OURS,
  "401": "does not accept sign_in.client_id with this client secret. Correct them in the configuration file.",
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED:
    "gave an ID token that this machine's clock finds expired or not valid yet. Correct the clock that is wrong.",
  OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED:
    "names itself otherwise than sign_in.issuer. Set that to the issuer in its discovery document, for one tenant.",
  ADDRESS_REFUSED: "has a private address. If that is right, set allow_private_networks: true under sign_in.",
};
/** Signing in again may help. */
const PERSONAL = ["invalid_grant", "OAUTH_INVALID_RESPONSE", "OAUTH_JWT_CLAIM_COMPARISON_FAILED"];

/**
 * Returns the failure as a sentence that says what to do. It has no cause on purpose: the library's errors carry claims
 * and bodies, which no log may show. The server logs a 502 once.
 */
function explainIssuerFailure(thrown: unknown, issuer: string): Refusal {
  if (thrown instanceof Refusal) return thrown;
  const error = toError(thrown);
  const codes = listCodes(error);
  const isEnded = error instanceof AuthorizationResponseError;
  const code = Object.keys(MEANINGS).find((one) => codes.includes(one)) as keyof typeof MEANINGS | undefined;
  const tls = explainTlsFailure(error, "the issuer");
  let meant = `does not answer as it should (${codes.join(", ") || "no code"}). Try again later. If it lasts, run longwatch doctor.`;
  if (isEnded)
    meant = `ended the sign-in with ${codes[0]}. Sign in again, or ask whether you may use Longwatch.`;
  else if (code !== undefined) meant = MEANINGS[code];
  else if (tls instanceof TlsFailureError) meant = `cannot be trusted (${tls.message}).`;
  const [status, slug] =
    isEnded || PERSONAL.includes(code ?? "")
      ? ([401, "sign-in-refused"] as const)
      : ([502, "issuer-failed"] as const);
  return new Refusal(status, { slug, detail: `The issuer ${new URL(issuer).host} ${meant}` });
}

/** The codes and statuses of an error and its causes. The issuer chooses some, so only words of a code's form are taken. */
function listCodes(error: Error): string[] {
  const isAnswer = error instanceof AuthorizationResponseError || error instanceof ResponseBodyError;
  const codes: unknown[] = isAnswer ? [error.error] : [];
  for (let at: unknown = error; typeof at === "object" && at !== null && codes.length < 8; ) {
    const { code, status, cause } = at as Record<string, unknown>;
    // The library has no code of its own for a wrong signature, key or algorithm, but it always says which.
    if ("signature" in at || "header" in at || "alg" in at) codes.push("ID_TOKEN_NOT_SIGNED");
    codes.push(code, status);
    at = cause;
  }
  const shown = codes.filter((code) => code !== undefined).map(String);
  return [...new Set(shown.map((code) => (/^[\w.-]{1,60}$/.test(code) ? code : "an unknown error")))];
}
