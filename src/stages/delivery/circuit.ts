import type { CircuitState } from "#model/kinds.ts";

/** After so many failures in a row, of any messages, the channel itself counts as failing. */
const FAILURES_TO_OPEN = 5;
const FIRST_PAUSE_MS = 30_000;

/** Whether a channel is worth trying; times in epoch ms. */
export interface Circuit {
  /** disabled: the receiver is gone for good (410), until a restart or another configuration. */
  readonly state: CircuitState;
  /** Failures since the last success. */
  readonly failures: number;
  /** Since the last success. */
  readonly openings: number;
  /** Null while closed. */
  readonly openedAtMs: number | null;
  /** While open: when one message may be sent as a probe. */
  readonly retryAtMs: number;
  readonly lastError: string | null;
}

export interface AttemptsEnded {
  /** One of the channel's capabilities. */
  readonly longestPauseMs: number;
  readonly nowMs: number;
  readonly succeeded: number;
  readonly failed: number;
  /** The receiver has answered that the address is gone for good (410). */
  readonly isGone: boolean;
  readonly lastError: string | null;
}

/** Returns the circuit after attempts that ran at the same time. One success shows that the channel works. */
export function afterAttempts(circuit: Circuit, ended: AttemptsEnded): Circuit {
  const { longestPauseMs, nowMs, succeeded, failed, isGone, lastError } = ended;
  if (isGone) return { ...circuit, state: "disabled", openedAtMs: nowMs, lastError };
  // An attempt that was in progress when the channel was disabled changes nothing.
  if (circuit.state === "disabled") return circuit;
  if (succeeded > 0) return closeCircuit(nowMs);
  if (failed === 0) return circuit;
  const failures = circuit.failures + failed;
  if (failures < FAILURES_TO_OPEN) return { ...circuit, failures, lastError };
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(circuit.openings, 20), longestPauseMs);
  return {
    state: "open",
    failures,
    openings: circuit.openings + 1,
    openedAtMs: circuit.openedAtMs ?? nowMs,
    retryAtMs: nowMs + pauseMs,
    lastError,
  };
}

export function closeCircuit(nowMs: number): Circuit {
  return { state: "closed", failures: 0, openings: 0, openedAtMs: null, retryAtMs: nowMs, lastError: null };
}

/** Returns the state in one word; half-open: the next message is a probe. */
export function describeCircuit({ state, retryAtMs }: Circuit, nowMs: number): string {
  return state === "open" && retryAtMs <= nowMs ? "half-open" : state;
}
