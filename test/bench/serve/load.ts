import autocannon from "autocannon";

/** What clients measured under load. */
export interface LoadFigures {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p97Ms: number;
  /** Answers other than 2xx, and requests without one. */
  readonly failed: number;
}

const AT_MOST_SECONDS = 3_600;
const ANSWER_SECONDS = 60;

/** Posts one body over and over until it is stopped. */
export function startLoad({ url, body, connections }: { url: string; body: unknown; connections: number }) {
  const run = autocannon({
    url,
    method: "POST",
    headers: { "content-type": "application/json", AccessKey: "bench" },
    body: JSON.stringify(body),
    connections,
    duration: AT_MOST_SECONDS,
    timeout: ANSWER_SECONDS,
  });
  return {
    /** Ends the load and returns its results. */
    async stop(): Promise<LoadFigures> {
      run.stop();
      const { latency, requests, non2xx, errors, timeouts } = await run;
      return {
        requests: requests.total,
        p50Ms: latency.p50,
        p97Ms: latency.p97_5,
        failed: non2xx + errors + timeouts,
      };
    },
  };
}
