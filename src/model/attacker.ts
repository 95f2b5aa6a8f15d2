import type { SourceKind } from "./kinds.ts";

/** A key that has not reached its line for this many minutes attacks no more. */
export const QUIET_MINUTES = 30;

/** Returns the name of a key within its zone. */
export function attackerIdOf({ kind, key }: { readonly kind: SourceKind; readonly key: string }): string {
  return `${kind}=${key}`;
}

/** Returns whether the attacker reached its line within the half hour that ends with `minute`. */
export function isActive({ lastFiredAt }: { readonly lastFiredAt: number }, minute: number): boolean {
  return minute + 1 - lastFiredAt < QUIET_MINUTES;
}
