import { AuthorizationResponseError, ResponseBodyError } from "openid-client";
import { toError } from "#lib/errors.ts";
import { explainTlsFailure, TlsFailureError } from "#lib/http.ts";
import { Refusal } from "#operations/refusal.ts";

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
export function explainIssuerFailure(thrown: unknown, issuer: string): Refusal {
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
