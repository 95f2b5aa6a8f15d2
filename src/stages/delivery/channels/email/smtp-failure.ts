import { toError } from "#lib/errors.ts";
import { adviseTls } from "#lib/http.ts";
import { DeliveryError } from "../../delivery-error.ts";

const UNTRUSTED = /self-signed certificate|issuer certificate|verify the first certificate/;

/**
 * Returns the error of a failed SMTP exchange: a 4xx may succeed later, a 5xx never will. Only the code of the server's
 * reply is repeated, because its text may contain our message.
 */
export function toSmtpFailure(thrown: unknown, host: string): DeliveryError {
  if (thrown instanceof DeliveryError) return thrown;
  const error: Error & { responseCode?: unknown; code?: unknown } = toError(thrown);
  const { responseCode, code } = error;
  if (typeof responseCode === "number" && responseCode >= 400) {
    const text = `${host} answered ${responseCode}`;
    return responseCode < 500
      ? new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text })
      : new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
  }
  const shown = typeof code === "string" ? code.slice(0, 60) : "UNKNOWN";
  // The mail library replaces Node's code by its own, and keeps the text.
  const cause = UNTRUSTED.test(error.message)
    ? Object.assign(new Error(), { code: "SELF_SIGNED_CERT_IN_CHAIN" })
    : error;
  const advice = adviseTls(cause, "the receiver");
  const text = `no answer from ${host} (${shown})${advice === null ? "" : `: ${advice}`}`;
  return new DeliveryError({ code: "ENDPOINT_UNREACHABLE", disposition: "retry", text });
}
