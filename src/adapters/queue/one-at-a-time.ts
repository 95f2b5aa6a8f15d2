import { untilAborted } from "#lib/until-aborted.ts";

type Run<Payload> = (payload: Payload, signal: AbortSignal) => Promise<string | void>;

/**
 * Returns a function that runs `run` once at a time. A call during a run waits for its end. A call while another one
 * waits does nothing, because the waiting one has not read anything yet. A run that has not ended at its deadline
 * no longer counts: a connection that the network has dropped may never answer.
 */
export function oneAtATime<Payload>(run: Run<Payload>): Run<Payload> {
  let running: Promise<void> | null = null;
  let isWaiting = false;
  return async (payload, signal) => {
    if (isWaiting) return "another run waits to begin";
    if (running !== null) {
      isWaiting = true;
      await running;
      isWaiting = false;
    }
    const ended = run(payload, signal);
    const end = () => {
      running = null;
    };
    running = untilAborted(ended, signal).then(end, end);
    return ended;
  };
}
