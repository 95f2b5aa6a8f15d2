import { createRateLimiter } from "#lib/rate-limiter.ts";

export type SecurityAction =
  | "key.refused"
  | "sign-in.refused"
  | "scope.denied"
  | "zone.denied"
  | "rate.limited";

interface SecurityEvent {
  readonly action: SecurityAction;
  readonly actor: string;
  /** The requested method and route. */
  readonly subject: string;
  readonly details: Readonly<Record<string, string>>;
}

type WrittenEvent = Omit<SecurityEvent, "details"> & {
  /** `notWritten`: number of events of the same action that were omitted since the previous entry. */
  readonly details: Readonly<Record<string, string | number>>;
};

export interface SecurityEventsOptions {
  readonly write: (event: WrittenEvent) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export type NoteSecurityEvent = (event: SecurityEvent, nowMs: number) => void;

/** Ten entries of each action at once, then one a minute. */
const QUOTA = { quota: 10, windowMs: 10 * 60_000, maxKeys: 10 };

/**
 * Writes an audit entry for a refused request, at a limited rate. Omitted events are counted, and the next entry of the
 * same action contains their number.
 */
export function createSecurityEvents({ write, onError }: SecurityEventsOptions): NoteSecurityEvent {
  const limiter = createRateLimiter(QUOTA);
  const leftOut = new Map<SecurityAction, number>();
  return (event, nowMs) => {
    const { action } = event;
    const before = leftOut.get(action) ?? 0;
    if (!limiter.take(action, nowMs).isAllowed) {
      leftOut.set(action, before + 1);
      return;
    }
    leftOut.delete(action);
    const details = { ...event.details, ...(before > 0 ? { notWritten: before } : {}) };
    write({ ...event, details }).catch(onError);
  };
}
