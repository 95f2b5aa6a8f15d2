import type { CircuitState } from "#model/kinds.ts";

/** The circuit opens after this number of failures in a row, of any messages. */
const FAILURES_TO_OPEN = 5;
const FIRST_PAUSE_MS = 30_000;

/** The state of a channel's circuit; times in epoch ms. */
export interface Circuit {
  /** `disabled`: the receiver is gone for good (410). A restart or a changed configuration ends this state. */
  readonly state: CircuitState;
  /** Number of failures since the last success. */
  readonly failures: number;
  /** Number of openings since the last success. */
  readonly openings: number;
  /** Null while closed. */
  readonly openedAtMs: number | null;
  /** While the circuit is open: the time from which one message may be sent as a probe. */
  readonly retryAtMs: number;
  readonly lastError: string | null;
}

export interface AttemptsEnded {
  /** One of the channel's capabilities. */
  readonly longestPauseMs: number;
  readonly nowMs: number;
  readonly succeeded: number;
  readonly failed: number;
  /** True if the receiver answered that the address is gone for good (410). */
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

/** Returns the state in one word. Half-open means that the next message is a probe. */
export function describeCircuit({ state, retryAtMs }: Circuit, nowMs: number): string {
  return state === "open" && retryAtMs <= nowMs ? "half-open" : state;
}
