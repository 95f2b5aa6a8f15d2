import type { Clock } from "#lib/clock.ts";

export interface LastUsedOptions {
  readonly touch: (keyId: string) => Promise<void>;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 60_000;

/** Records that a key was used, at most once a minute per key. No request waits for it, and a failure is ignored. */
export function createLastUsed({ touch, clock, onError }: LastUsedOptions): (keyId: string) => void {
  const notedAt = new Map<string, number>();
  return (keyId) => {
    const now = clock();
    const before = notedAt.get(keyId);
    if (before !== undefined && now - before < EVERY_MS) return;
    notedAt.set(keyId, now);
    touch(keyId).catch((thrown: unknown) => {
      notedAt.delete(keyId);
      onError(thrown);
    });
  };
}
