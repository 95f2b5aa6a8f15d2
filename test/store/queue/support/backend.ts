import { createSecret } from "#lib/secret.ts";
import { createQueueBackend, type QueueBackend } from "#store/queue/backend.ts";

export type Kind = "postgres" | "redis";
const NOWHERE = createSecret("postgres://127.0.0.1:1/none");

export function createBackend(
  kind: Kind,
  url: string,
  limits: { readonly idleInTransactionMs?: number } = {},
): QueueBackend {
  return createQueueBackend({
    ...limits,
    redis: kind === "redis" ? { url: createSecret(url), ca: null } : null,
    databaseUrl: kind === "redis" ? NOWHERE : createSecret(url),
  });
}
