import { UsageError } from "#lib/errors.ts";
import type { Secret } from "#lib/secret.ts";

/** Splits the base address into origin and path prefix. Throws a UsageError naming every mistake, never the key. */
export function checkConnection(baseUrl: string, accessKey: Secret): { origin: string; basePath: string } {
  const mistakes: string[] = [];
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    mistakes.push(
      `the platform's address ${JSON.stringify(baseUrl.replace(/\/\/[^/@]*@/, "//"))} must be an http or https URL`,
    );
  } else if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    mistakes.push(`the platform's address on ${url.host} must hold no user, password, query or fragment`);
  }
  if (!/^[\u0021-\u007e]+$/.test(accessKey.reveal())) {
    mistakes.push("the access key must be printable ASCII without blanks, and not empty");
  }
  if (mistakes.length > 0 || url === null) throw new UsageError(mistakes);
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, "") };
}
