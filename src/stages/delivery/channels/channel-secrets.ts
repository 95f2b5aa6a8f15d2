import type { Secret } from "#lib/secret.ts";

/** Returns every credential of these channels or destinations, wherever it is in their configuration. */
export function secretsOf(configs: readonly object[]): readonly Secret[] {
  return configs.flatMap(findSecrets);
}

function findSecrets(value: unknown): Secret[] {
  if (typeof value !== "object" || value === null) return [];
  return "reveal" in value ? [value as Secret] : Object.values(value).flatMap(findSecrets);
}
