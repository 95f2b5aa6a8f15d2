import { toError } from "../../../lib/errors.ts";
import { DeliveryError } from "../../delivery-error.ts";

/**
 * What a failed SMTP exchange means: a 4xx may go later, a 5xx never will. Of the server's words only the code is
 * repeated: they may echo us.
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
  const text = `no answer from ${host} (${shown})`;
  return new DeliveryError({ code: "ENDPOINT_UNREACHABLE", disposition: "retry", text });
}
