import { toError } from "../lib/errors.ts";
import { within } from "../lib/within.ts";

export interface Health {
  readonly state: "ok" | "degraded" | "failing";
  /** Anybody may read it: no SQL, no addresses, no text of an error. */
  readonly detail?: string;
}

export interface HealthCheck {
  readonly name: string;
  /** A check that throws or is late is failing; degraded when the service works without it. */
  readonly isRequired: boolean;
  check(): Promise<Health>;
}

export interface Readiness extends Health {
  readonly checks: Readonly<Record<string, Health>>;
}

export interface ReadinessOptions {
  readonly checks: readonly HealthCheck[];
  readonly timeoutMs: number;
  readonly onError: (name: string, error: Error) => void;
}

/** Asks all checks at once; the worst of them counts. Probes that come together share one answer. */
export function createReadiness({ checks, timeoutMs, onError }: ReadinessOptions): () => Promise<Readiness> {
  const probes = checks.map((check) => createProbe(check, timeoutMs, onError));
  let asking: Promise<Readiness> | null = null;

  async function ask(): Promise<Readiness> {
    const healths = await Promise.all(probes.map((probe) => probe()));
    const state = (["failing", "degraded"] as const).find((bad) => healths.some((h) => h.state === bad));
    return {
      state: state ?? "ok",
      checks: Object.fromEntries(
        checks.map(({ name }, index) => [name, healths[index] ?? { state: "failing" }]),
      ),
    };
  }

  return () => {
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
}

function createProbe(
  check: HealthCheck,
  timeoutMs: number,
  onError: ReadinessOptions["onError"],
): () => Promise<Health> {
  const bad = check.isRequired ? "failing" : "degraded";
  let pending: Promise<Health> | null = null;

  async function ask(): Promise<Health> {
    try {
      return await check.check();
    } catch (thrown) {
      onError(check.name, toError(thrown));
      return { state: bad, detail: "the check failed; the log says why" };
    } finally {
      pending = null;
    }
  }

  return async () => {
    // One that hangs is not asked again before it has answered: probes must not pile up in a connection pool.
    pending ??= ask();
    let health: Health = { state: bad, detail: `the check did not end within ${timeoutMs} ms` };
    await within(
      pending.then((answer) => {
        health = answer;
      }),
      timeoutMs,
    );
    return health;
  };
}
