import { createRateLimiter } from "../limits/rate-limiter.ts";

export type SecurityAction =
  | "key.refused"
  | "sign-in.refused"
  | "scope.denied"
  | "zone.denied"
  | "rate.limited";

interface SecurityEvent {
  readonly action: SecurityAction;
  readonly actor: string;
  /** The method and route that was asked for. */
  readonly subject: string;
  readonly details: Readonly<Record<string, string>>;
}

type WrittenEvent = Omit<SecurityEvent, "details"> & {
  /** `notWritten`: how many of the same action came since the entry before. */
  readonly details: Readonly<Record<string, string | number>>;
};

export interface SecurityEventsOptions {
  readonly write: (event: WrittenEvent) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export type NoteSecurityEvent = (event: SecurityEvent, nowMs: number) => void;

/** Of each action ten at once and one a minute after that. */
const QUOTA = { quota: 10, windowMs: 10 * 60_000, maxKeys: 10 };

/**
 * Writes down who was refused, but never as fast as they can ask: what is left out is counted, and the next entry of its
 * action says how many.
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
