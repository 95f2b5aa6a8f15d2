import type SMTPTransport from "nodemailer/lib/smtp-transport/index.js";
import { z } from "zod";
import { DeliveryError } from "../../delivery-error.ts";

const addresses = z.array(z.string());
type Outcome = Pick<SMTPTransport.SentMessageInfo, "accepted" | "rejectedErrors">;

/** Returns the recipients that an earlier attempt settled: they have the mail, or the server refused them for good. */
export function readSettled(progress: string | null | undefined): readonly string[] {
  try {
    return addresses.parse(JSON.parse(progress ?? "[]"));
  } catch {
    return [];
  }
}

/** Returns the outcome of a mail that the server refused for every recipient. Throws any other error again. */
export function toRefusals(thrown: unknown): Outcome {
  const { rejected, rejectedErrors } = thrown as { rejected?: unknown } & Partial<Outcome>;
  if (rejected === undefined || rejectedErrors === undefined) throw thrown;
  return { accepted: [], rejectedErrors };
}

/**
 * Throws if the server deferred a recipient, after it gave the settled recipients to `onProgress`, so that the next
 * attempt goes to the deferred ones only. A recipient that the server refused for good is skipped, because the others
 * have the mail.
 */
export function settleRecipients(
  to: readonly string[],
  { accepted, rejectedErrors = [] }: Outcome,
  { host, onProgress }: { readonly host: string; readonly onProgress?: (progress: string) => void },
): void {
  const deferrals = rejectedErrors.filter(
    ({ responseCode = 0 }) => responseCode >= 400 && responseCode < 500,
  );
  const deferred = new Set(deferrals.map(({ recipient = "" }) => recipient.toLowerCase()));
  if (deferred.size === 0) return;
  const settled = to.filter((address) => !deferred.has(address.toLowerCase()));
  if (accepted.length > 0) onProgress?.(JSON.stringify(settled));
  const text = `${host} deferred ${deferred.size} of ${to.length} recipients`;
  throw new DeliveryError({ code: "RECIPIENT_DEFERRED", disposition: "retry", text });
}
